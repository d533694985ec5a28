//! Programs that run the file they are given, or a language in their words. One list for those who must not leave their
//! words open in a rule, and for those who bind the files that they run; what is not in it is no safer for it.

/// Shells, interpreters, editors with commands, and words of the shell that take a line.
pub const INTERPRETERS: &str = "sh bash dash zsh ksh mksh fish csh tcsh ash busybox rbash pwsh powershell python pypy ipython perl ruby irb \
    node nodejs deno bun php lua luajit tclsh wish expect awk gawk mawk nawk sed gsed ed ex vi vim nvim view emacs \
    guile scheme racket sbcl clisp ghci runghc runhaskell ocaml elixir iex erl escript julia r rscript octave \
    groovy scala kotlin jshell java swift osascript source . eval exec builtin command trap jq bc dc m4 gdb lldb \
    sqlite psql mysql ts-node tsx nu xonsh yash posh elvish osh ysh toybox hush rc jython graalpy micropython \
    pythonw raku rakudo jruby mruby truffleruby qjs d8 jsc hhvm luau texlua janet hy fennel gosh csi petite gsi \
    clojure clj bb ecl ccl ghc kotlinc scala-cli amm gjs cjs wasmtime wasmer original-awk goawk kak mariadb duckdb \
    mongosh bpftrace stap gnuplot maxima gp gforth swipl crystal nim rdmd coffee electron cmd cscript wscript \
    alias nano tex pdftex latex pdflatex xelatex lualatex gs ghostscript dart tcc sash jrunscript ginsh \
    byebug es scsh oksh lksh rksh ion murex brush execlineb git-shell rvim rview gvim gview evim vimx helix hx micro joe jed \
    mg zile pdb ipdb pudb bpdb dlv delve debugpy cgdb ddd gdbtui gdb-multiarch rust-gdb rust-lldb jdb ndb drgn bpython \
    ptpython jupyter papermill streamlit gunicorn uvicorn hypercorn flask django-admin celery torchrun accelerate \
    deepspeed horovodrun pyinstrument scalene memray fil-profile austin bats shellspec shunit2 prove busted matlab \
    scilab sage wolframscript stata coqtop lean utop smlsharp poly hugs runhugs jbang kscript bsh rhino jjs mujs duk \
    hermes llrt wasmedge wasm3 chibi-scheme bigloo mit-scheme chez ros moon parrot gprolog pgcli mycli litecli usql sqlplus \
    mongo clickhouse-client cqlsh";
