//! The filter of calls to the system: what a program in a box never needs, and what would lead out of it.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;
use seccompiler::TargetArch;

use crate::domain::sandbox::Level;

/// Refused whatever the arguments are.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    PROCESS_MRELEASE,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Ways around this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    // Other rules for itself, as by a file of `/proc/self/attr`.
    LSM_SET_SELF_ATTR,
    // Keys of the kernel.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // What is mounted where.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    // The machine as a whole.
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
/// What not every C library has a name for. The numbers are the same everywhere, but for the last.
const QUOTACTL_FD: i64 = 443;
const PROCESS_MRELEASE: i64 = 448;
const LSM_SET_SELF_ATTR: i64 = 460;
const OPEN_TREE_ATTR: i64 = 467;
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
/// Priorities, bounds and pages of processes, with the place of the process among the arguments: another's are left alone. In a
/// full box there is no other.
const OTHERS: [(i64, u8); 7] = [
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
];
/// The same, of groups and users too, with the kind that is one process.
const OTHERS_BY_KIND: [(i64, u64); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];
/// Memory and queues that programs share by a number or a name of the whole machine. Those of a full box are its own.
const SHARING: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Marks of files, which lists of rights are, too: Landlock does not hold these back, neither setting nor reading them by the
/// name of a file, whether it can be opened or not. Programs take it for a file system that has none. A full box has no file
/// of somebody else.
const MARKS: [i64; 14] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    SETXATTRAT,
    GETXATTRAT,
    LISTXATTRAT,
    REMOVEXATTRAT,
];
/// The numbers are the same everywhere.
const SETXATTRAT: i64 = 463;
const GETXATTRAT: i64 = 464;
const LISTXATTRAT: i64 = 465;
const REMOVEXATTRAT: i64 = 466;
/// Requests that change the flags of a file that is only open to be read, and what else belongs to them: the short and the
/// long FS_IOC_SETFLAGS and FS_IOC_SETVERSION, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY.
const FLAGS: [u64; 7] = [0x4004_6602, 0x4008_6602, 0x4004_7602, 0x4008_7602, 0x401c_5820, 0x4080_6685, 0x800c_6613];
/// What tells of files by their names, or sets their flags, whether they can be opened or not: who opens, makes and changes
/// files in a folder, and the flags of one. Programs take it for a kernel that has none of it, and look again and again, or
/// ask in the older way.
const UNSEEN: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    FILE_GETATTR,
    FILE_SETATTR,
];
/// The numbers are the same everywhere.
const FILE_GETATTR: i64 = 468;
const FILE_SETATTR: i64 = 469;
/// Calls that set the mode of a file, with its place among the arguments.
#[rustfmt::skip]
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];
/// Calls that do so when they make a file, with the place of their flags; the mode follows.
const MAKERS: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];
/// The number is the same everywhere.
const FCHMODAT2: i64 = 452;
/// A file that is made has one of these flags: O_CREAT, and what O_TMPFILE has beyond a folder.
const MAKING: [u64; 2] = [0o100, 0o20_000_000];
/// Whoever runs a file of such a mode becomes its owner, or one of its group.
const BECOMING: [u64; 2] = [0o4000, 0o2000];
/// Requests that put letters into the input of a terminal: TIOCSTI, TIOCLINUX.
const TYPING: [u64; 2] = [0x5412, 0x541c];
/// Requests that make, copy or remove a volume of btrfs: the old and the new BTRFS_IOC_SNAP_CREATE, …SUBVOL_CREATE and
/// …SNAP_DESTROY. A copy can hold more than the folder that the box has of a volume, and Landlock is not asked about any.
const VOLUMES: [u64; 6] = [0x5000_9401, 0x5000_9417, 0x5000_940e, 0x5000_9418, 0x5000_940f, 0x5000_943f];
/// The bits of a kind of socket that are no flags.
const KIND_BITS: u64 = 0xf;
/// The first number of a second table of the same calls.
#[cfg(target_arch = "x86_64")]
const SECOND_TABLE: u32 = 0x4000_0000;

/// The filters of a box, to be applied in this order.
pub(crate) fn programs(level: Level, has_network: bool) -> Result<Vec<BpfProgram>, String> {
    let compiled = || -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
        let refused = filter(rules(level, has_network)?, libc::EPERM)?;
        // Their flags lie where a filter can't look. Where they are unknown, `clone` and `openat` are taken instead.
        let unknown = [libc::SYS_clone3, libc::SYS_openat2];
        let unseen = UNSEEN.iter().filter(|_| level != Level::Full);
        let unknown = unknown.iter().chain(unseen).map(|call| (*call, Vec::new()));
        let mut all = vec![filter(unknown.collect(), libc::ENOSYS)?, refused];
        if level != Level::Full {
            let mut marks: BTreeMap<i64, Vec<SeccompRule>> = MARKS.map(|call| (call, Vec::new())).into();
            marks.insert(libc::SYS_ioctl, requests(&FLAGS)?);
            all.push(filter(marks, libc::EOPNOTSUPP)?);
        }
        #[cfg(target_arch = "x86_64")]
        all.push(second_table());
        Ok(all)
    };
    compiled().map_err(|error| format!("the filter of system calls can't be made ({error})"))
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let action = SeccompAction::Errno(error.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, action, machine)?.try_into()
}

fn rules(level: Level, has_network: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    use SeccompCmpArgLen::Dword;
    use SeccompCmpOp::MaskedEq;
    use SeccompCmpOp::Ne;
    let when = |arg: u8, op: SeccompCmpOp, value: u64| SeccompCondition::new(arg, Dword, op, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_ioctl, requests(&[TYPING.as_slice(), &VOLUMES].concat())?);
    let nested = libc::CLONE_NEWUSER as u64;
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(call, vec![SeccompRule::new(vec![when(0, MaskedEq(nested), nested)?])?]);
    }
    // In a full box the internet is a network of its own, which leads nowhere; else no socket may be made.
    let internet = vec![when(0, Ne, libc::AF_INET as u64)?, when(0, Ne, libc::AF_INET6 as u64)?];
    let sockets = match level == Level::Full || has_network {
        true => vec![SeccompRule::new(internet)?],
        false => Vec::new(),
    };
    rules.insert(libc::SYS_socket, sockets);
    // Two ends of one pipe are harmless, but for the kinds that can send elsewhere as well.
    let elsewhere = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| kind as u64);
    let pairs: Result<Vec<SeccompRule>, _> =
        elsewhere.iter().map(|kind| SeccompRule::new(vec![when(1, MaskedEq(KIND_BITS), *kind)?])).collect();
    rules.insert(libc::SYS_socketpair, pairs?);
    for (call, mode) in MODES {
        let becoming = BECOMING.map(|bit| SeccompRule::new(vec![when(*mode, MaskedEq(bit), bit)?]));
        rules.insert(*call, becoming.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags) in MAKERS {
        let both = MAKING.into_iter().flat_map(|flag| BECOMING.map(|bit| (flag, bit)));
        let making = both.map(|(flag, bit)| {
            SeccompRule::new(vec![when(*flags, MaskedEq(flag), flag)?, when(*flags + 1, MaskedEq(bit), bit)?])
        });
        rules.insert(*call, making.collect::<Result<_, _>>()?);
    }
    if level != Level::Full {
        rules.extend(SHARING.map(|call| (call, Vec::new())));
        for (call, process) in OTHERS {
            rules.insert(call, vec![SeccompRule::new(vec![when(process, Ne, 0)?])?]);
        }
        for (call, kind) in OTHERS_BY_KIND {
            let others = [when(0, Ne, kind)?, when(1, Ne, 0)?].map(|condition| SeccompRule::new(vec![condition]));
            rules.insert(call, others.into_iter().collect::<Result<_, _>>()?);
        }
    }
    Ok(rules)
}

/// These requests to what is open.
fn requests(all: &[u64]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let is_one = |request: &u64| SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *request);
    all.iter().map(|request| SeccompRule::new(vec![is_one(request)?])).collect()
}

/// Refuses the second table, whose numbers the other filters do not know.
#[cfg(target_arch = "x86_64")]
fn second_table() -> BpfProgram {
    use seccompiler::sock_filter;
    let line = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    vec![
        line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        line(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, SECOND_TABLE),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        line(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
