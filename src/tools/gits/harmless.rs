//! Settings of a repository's own configuration that neither start a program nor make git read or show a file, when it
//! runs what the read-only table lets it run (docs/SAFETY.md §6). Whatever is not listed is asked about, so each line
//! here is to be sure of: a new subcommand or option in `policy/table/git.rs` means to look through it once more.

use crate::tools::gits::settings::Setting;
use crate::tools::pipeline;

/// Sections of which every setting is harmless: they are about commands and programs that are not in the table, or are
/// read by other programs only.
const SECTIONS: &str = "advice alias author branch checkout color column commit committer feature fetch gitflow gui index \
    lfs maintenance pack pull push rebase rerere sendemail stash status tag user worktree";
/// Settings that are harmless by themselves.
const KEYS: &str = "\
    apply.whitespace \
    blame.blankboundary blame.coloring blame.date blame.markignoredlines blame.markunblamablelines blame.showemail \
    blame.showroot \
    clone.defaultremotename \
    core.abbrev core.autocrlf core.bare core.bigfilethreshold core.checkstat core.commentchar core.commentstring \
    core.commitgraph core.compression core.createobject core.deltabasecachelimit core.eol core.filemode \
    core.filesreflocktimeout core.fscache core.fsmonitorhookversion core.fsync core.fsyncmethod core.fsyncobjectfiles \
    core.hidedotfiles core.ignorecase core.ignorestat core.logallrefupdates core.longpaths core.loosecompression \
    core.maxtreedepth core.multipackindex core.packedgitlimit core.packedgitwindowsize core.packedrefstimeout \
    core.precomposeunicode core.prefersymlinkrefs core.preloadindex core.protecthfs core.protectntfs core.quotepath \
    core.repositoryformatversion core.safecrlf core.sharedrepository core.sparsecheckout core.sparsecheckoutcone \
    core.splitindex core.symlinks core.trustctime core.untrackedcache core.usereplacerefs core.warnambiguousrefs \
    core.whitespace \
    diff.algorithm diff.autorefreshindex diff.colormoved diff.colormovedws diff.context diff.dirstat diff.dstprefix \
    diff.guitool diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative \
    diff.renamelimit diff.renames diff.srcprefix diff.statgraphwidth diff.statnamewidth diff.suppressblankempty diff.tool \
    diff.wordregex diff.wserrorhighlight diff.*.algorithm diff.*.binary diff.*.wordregex diff.*.xfuncname \
    extensions.noop extensions.partialclone extensions.preciousobjects extensions.relativeworktrees \
    extensions.worktreeconfig \
    gc.auto gc.autodetach gc.autopacklimit gc.bigpackthreshold gc.cruftpacks gc.packrefs gc.pruneexpire gc.reflogexpire \
    gc.reflogexpireunreachable gc.rerereresolved gc.rerereunresolved gc.worktreepruneexpire gc.writecommitgraph \
    gpg.format \
    http.extraheader http.postbuffer http.sslverify http.version http.*.extraheader http.*.sslverify \
    init.defaultbranch \
    log.abbrevcommit log.date log.decorate log.excludedecoration log.follow log.graphcolors log.initialdecorationset \
    log.mailmap log.showroot \
    merge.autostash merge.conflictstyle merge.defaulttoupstream merge.directoryrenames merge.ff merge.guitool merge.log \
    merge.renamelimit merge.renames merge.stat merge.tool \
    protocol.version \
    receive.denycurrentbranch receive.denydeletes receive.denynonfastforwards \
    remote.pushdefault remote.*.fetch remote.*.followremotehead remote.*.gh-resolved remote.*.mirror \
    remote.*.partialclonefilter remote.*.promisor remote.*.prune remote.*.prunetags remote.*.push remote.*.pushurl \
    remote.*.skipdefaultupdate remote.*.skipfetchall remote.*.tagopt remote.*.url \
    submodule.active submodule.alternateerrorstrategy submodule.alternatelocation submodule.fetchjobs \
    submodule.propagatebranches submodule.recurse submodule.*.active submodule.*.branch \
    submodule.*.fetchrecursesubmodules submodule.*.update submodule.*.url \
    svn-remote.*.branches svn-remote.*.fetch svn-remote.*.tags svn-remote.*.url \
    url.*.insteadof url.*.pushinsteadof \
    versionsort.suffix";
/// What makes git look into a submodule, or not.
const IGNORE: &str = "submodule.*.ignore";
/// Values of it by which git starts nothing there. By others it runs `git status` in it, by the configuration of that.
const IGNORED: [&[u8]; 2] = [b"dirty", b"all"];
/// The file of commits that `blame` passes over, from the top of the repository.
const PASSED_OVER: &str = "blame.ignorerevsfile";

/// The first setting that is not known to be harmless. Whether git may read and show a file in the repository, which is
/// named from its top, says `is_ordinary_file`.
pub(crate) fn fault<'a>(settings: &'a [Setting<'_>], is_ordinary_file: &dyn Fn(&[u8]) -> bool) -> Option<&'a str> {
    let has_fault = |setting: &&Setting<'_>| match setting.key.as_str() {
        PASSED_OVER => !setting.value.is_some_and(is_ordinary_file),
        IGNORE => is_entered(setting),
        key => !is_harmless(key),
    };
    settings.iter().find(has_fault).map(|setting| setting.key.as_str())
}

/// Whether a setting makes git look into a submodule by the configuration of that.
pub(crate) fn is_entered(setting: &Setting<'_>) -> bool {
    setting.key == IGNORE && !setting.value.is_some_and(|value| IGNORED.contains(&value))
}

fn is_harmless(key: &str) -> bool {
    let has = |list: &str, word: &str| list.split_whitespace().any(|listed| listed == word);
    let section = key.split('.').next().unwrap_or_default();
    has(SECTIONS, section) || has(KEYS, key) || pipeline::outranks(key)
}
