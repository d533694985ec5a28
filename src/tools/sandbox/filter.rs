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
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
];
/// Priorities and bounds of processes, with the place of the process among the arguments: another's are left alone. In a
/// full box there is no other.
const OTHERS: [(i64, u8); 5] = [
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
/// Marks of files, which lists of rights are, too: Landlock does not hold these back. Programs take it for a file system
/// that has none. A full box has no file of somebody else to set one on.
const MARKS: [i64; 8] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];
/// The numbers are the same everywhere.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
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
        let unknown = filter(unknown.map(|call| (call, Vec::new())).into(), libc::ENOSYS)?;
        let mut all = vec![unknown, refused];
        if level != Level::Full {
            all.push(filter(MARKS.map(|call| (call, Vec::new())).into(), libc::EOPNOTSUPP)?);
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
    use SeccompCmpOp::Eq;
    use SeccompCmpOp::MaskedEq;
    use SeccompCmpOp::Ne;
    let when = |arg: u8, op: SeccompCmpOp, value: u64| SeccompCondition::new(arg, Dword, op, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let typing: Result<Vec<SeccompRule>, _> =
        TYPING.iter().map(|request| SeccompRule::new(vec![when(1, Eq, *request)?])).collect();
    rules.insert(libc::SYS_ioctl, typing?);
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
