//! Calls to the system that Landlock does not look into: files outside are not watched by them, their marks not read, their
//! flags not changed; and ordinary programs go on without.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::boxes::attacks::check;
use crate::boxes::attacks::perl;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use tiller::domain::sandbox::Level;

/// The numbers of calls on x86_64; elsewhere only the newer ones are the same.
const IS_KNOWN: bool = cfg!(target_arch = "x86_64");

/// A script with the place of the file outside in `$p`.
fn about(path: &Path, script: &str) -> String {
    perl(&format!("$p = \"{}\"; {script}", path.display()))
}

/// Tries such a script, which prints GOT, without a box and in every box; where it does not work without one, it is told.
async fn attack(name: &str, file: &str, script: &str) {
    let line = |bench: &Bench| {
        let mark = "$n = \"user.GOT\"; $v = \"GOT\"; syscall(188, $p, $n, $v, 3, 0)";
        let path = bench.outside.join(file);
        Command::new("perl").args(["-e", &format!("$p = \"{}\"; {mark}", path.display())]).status().unwrap();
        about(&path, script)
    };
    let control = Bench::new(Level::None);
    if !control.run(&line(&control)).await.text.contains("GOT") {
        return crate::skip::skip(&format!("{name}: this kernel or file system has none of it"));
    }
    check(name, line).await;
}

#[tokio::test]
async fn no_file_outside_is_watched() {
    if !IS_KNOWN {
        return;
    }
    for (name, init) in [("inotify", "syscall(253)"), ("inotify with flags", "syscall(294, 0)")] {
        attack(name, ".", &format!("$i = {init}; print \"GOT\" if syscall(254, $i, $p, 0xfff) >= 0")).await;
    }
    // Reported are names and numbers of files, for which no rights are needed.
    let fan = "$i = syscall(300, 0x200, 0); print \"GOT\" if syscall(301, $i, 1, 0x20, -100, $p) == 0";
    attack("fanotify", "secret", fan).await;
}

#[tokio::test]
async fn no_mark_of_a_file_outside_is_read() {
    if !IS_KNOWN {
        return;
    }
    let (room, print) = ("$b = \"\\0\" x 64", "print $b");
    for (name, script) in [
        ("a mark", "syscall(191, $p, $n, $b, 64)"),
        ("a mark of no link", "syscall(192, $p, $n, $b, 64)"),
        ("the names of marks", "syscall(194, $p, $b, 64)"),
        ("those of no link", "syscall(195, $p, $b, 64)"),
        ("a mark below a folder", "$a = pack(\"p L L\", $b, 64, 0); syscall(464, -100, $p, 0, $n, $a, 16)"),
        ("the names below a folder", "syscall(465, -100, $p, 0, $b, 64)"),
    ] {
        attack(name, "secret", &format!("$n = \"user.GOT\"; {room}; {script}; {print}")).await;
    }
}

#[tokio::test]
async fn no_flag_of_a_file_outside_is_changed() {
    if !IS_KNOWN {
        return;
    }
    // That it is not to be dumped, which its owner may say.
    let by_name = "$a = \"\\0\" x 24; syscall(468, -100, $p, $a, 24, 0) == 0 or exit; \
                   substr($a, 0, 8) = pack(\"Q\", unpack(\"Q\", $a) | 0x80); \
                   print \"GOT\" if syscall(469, -100, $p, $a, 24, 0) == 0";
    attack("flags by the name of a file", "secret", by_name).await;
    let read = "$a = \"\\0\" x 24; print \"GOT\" if syscall(468, -100, $p, $a, 24, 0) == 0";
    attack("the flags of a file", "secret", read).await;
}

/// In a folder that the operator opened to be read, a file can be opened.
#[tokio::test]
async fn no_flag_of_a_file_is_changed_that_can_only_be_read() {
    let by_request = "open F, \"<\", $p or exit; print \"open\"; $a = pack(\"l!\", 0x80000 | 0x40); \
                      print \"GOT\" if ioctl(F, 0x40086602, $a)";
    // The number of the request is the same everywhere.
    let control = Bench::new(Level::None);
    let line = |bench: &Bench| about(&bench.outside.join("secret"), by_request);
    if !control.run(&line(&control)).await.text.contains("GOT") {
        return crate::skip::skip("flags by a request: the file system has none");
    }
    for level in levels("flags by a request") {
        let mut bench = Bench::new(level);
        bench.scene.sandbox.readable = vec![bench.outside.clone()];
        let text = bench.run(&line(&bench)).await.text;
        assert!(text.contains("open") && !text.contains("GOT"), "{level}: {text}");
    }
}

/// Siblings of what is refused already. Without a box each has another error than "not permitted", or none, for anybody.
#[tokio::test]
async fn siblings_of_refused_calls_are_refused() {
    if !IS_KNOWN {
        return;
    }
    for (name, call) in [
        ("quotactl_fd", "syscall(443, -1, 0, 0, 0)"),
        ("process_mrelease", "syscall(448, -1, 9)"),
        ("lsm_set_self_attr", "syscall(460, 0, 0, 0, 9)"),
        ("open_tree_attr", "syscall(467, -1, 0, -1, 0, 0)"),
        ("iopl", "syscall(172, 0)"),
        ("ioperm", "syscall(173, 128, 1, 0)"),
        ("a snapshot of btrfs", "open F, \"<\", \".\"; syscall(16, fileno F, 0x50009417, 0)"),
        ("a volume of btrfs", "open F, \"<\", \".\"; syscall(16, fileno F, 0x5000940e, 0)"),
    ] {
        check(name, |_| perl(&format!("{call}; print 0 + $! == 1 ? \"no\" : \"GOT\""))).await;
    }
    if nix::unistd::Uid::effective().is_root() {
        let kexec = "$n = \"\"; syscall(320, -1, -1, 0, $n, -1); print 0 + $! == 1 ? \"no\" : \"GOT\"";
        check("kexec_file_load", |_| perl(kexec)).await;
    }
}

#[tokio::test]
async fn ordinary_programs_live_without_marks_and_watches() {
    let git = "git -c init.defaultBranch=m init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm 1 && \
               git mv a/b a/moved && git status --short && git diff --stat HEAD && git stash -q && git clone -q . copy";
    let python = "cp a/b c; test ! -x /usr/bin/python3 || /usr/bin/python3 -c \
                  'import shutil; shutil.copy2(\"a/b\", \"c\"); shutil.copytree(\"a\", \"d\")' && cat c";
    for (line, wanted) in [
        ("cp -a a b && cp -p a/b c && cp -r --preserve=all a d && install -m 600 c e && mv a moved", ""),
        ("ls -l a | tail -n 1 | cut -c 1-11", "-rw-r--r-- \n"),
        ("ls -lL /usr > list && ls -l --color=always /etc/passwd . > list", ""),
        ("tar -cf t a && mkdir x && tar -xpf t -C x && tar --acls --xattrs -cf t2 a && cat x/a/b", "text\n"),
        ("find a -type f -newermt 2000-01-01 -exec stat -c %s {} +", "5\n"),
        ("sed -i s/text/TEXT/ a/b && cat a/b && touch -r a a/b && chmod 640 a/b && rm -r a", "TEXT\n"),
        (git, "R  a/b -> a/moved\n a/{b => moved} | 0\n 1 file changed, 0 insertions(+), 0 deletions(-)\n"),
        (python, "text\n"),
    ] {
        for level in [Level::None].into_iter().chain(levels("ordinary programs")) {
            let bench = Bench::new(level);
            bench.write("a/b", "text\n");
            fs::set_permissions(bench.scene.workspace.join("a/b"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .unwrap();
            let text = bench.run(line).await.text;
            let none = "exit status 0; no output\n".to_string();
            let wanted = if wanted.is_empty() { none } else { format!("exit status 0\n{wanted}") };
            let text = text.split_once("\nchanged what other programs").map_or(text.as_str(), |(text, _)| text);
            assert_eq!(text.trim_end(), wanted.trim_end(), "{level}: {line}");
        }
    }
    // What follows a file looks again and again instead, and says so.
    for level in levels("a file that is followed") {
        let bench = Bench::new(level);
        bench.write("a", "1\n");
        let text = bench.run("true & tail -n 1 -s 0.01 --pid=$! -f a").await.text;
        let said = "tail: inotify cannot be used, reverting to polling: Function not implemented\n";
        let wanted = if level == Level::Partial { said } else { "" };
        assert!(text.contains("1\n") && text.contains(wanted), "{level}: {text}");
    }
}
