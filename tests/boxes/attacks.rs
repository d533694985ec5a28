//! What a hostile command tries. Each attack prints GOT where it works, and must work without a box.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use tiller::domain::sandbox::Level;

/// Tries an attack without a box, where it works, and in every box, where it does not.
pub(crate) async fn check(name: &str, attack: impl Fn(&Bench) -> String) {
    let control = Bench::new(Level::None);
    let outcome = control.run(&attack(&control)).await;
    assert!(outcome.text.contains("GOT"), "{name} shows nothing, it does not work without a box: {}", outcome.text);
    for level in levels(name) {
        let bench = Bench::new(level);
        // The box stands and works, so that a failure is its doing.
        let outcome = bench.run("echo inside > a && cat a").await;
        assert_eq!(outcome.text, "exit status 0\ninside\n", "{level}");
        let outcome = bench.run(&attack(&bench)).await;
        assert!(!outcome.text.contains("GOT"), "{name} works in a box, {level}: {}", outcome.text);
    }
}

pub(crate) fn perl(script: &str) -> String {
    format!("perl -e '{script}'")
}

#[tokio::test]
async fn nothing_outside_is_written_or_read() {
    check("write outside", |bench| format!("touch {}/made && echo GOT", bench.outside.display())).await;
    check("write through a link", |bench| {
        format!("ln -s {} link && touch link/made && echo GOT", bench.outside.display())
    })
    .await;
    check("a second name", |bench| format!("ln {0}/secret name && cat name", bench.outside.display())).await;
    check("read outside", |bench| format!("cat {}/secret", bench.outside.display())).await;
    check("read the home", |_| format!("ls -d {}/.c* && echo GOT", env!("HOME"))).await;
    check("write the system", |_| "touch /usr/local/tiller-test && rm /usr/local/tiller-test && echo GOT".into()).await;
    check("read the passwords", |_| "test -r /etc/shadow -o -r /etc/fstab && cat /etc/fstab && echo GOT".into()).await;
}

#[tokio::test]
async fn no_network_is_reached() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    check("tcp", |_| format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo GOT")).await;
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    udp.set_nonblocking(true).unwrap();
    for level in [Level::None].into_iter().chain(levels("udp")) {
        let outcome = Bench::new(level).run(&format!("echo out > /dev/udp/127.0.0.1/{port}")).await;
        let has_come = udp.recv(&mut [0; 9]).is_ok();
        assert_eq!(has_come, level == Level::None, "{level}: {}", outcome.text);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    let by_path = format!(
        "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un(\"{}\")) and print \"GOT\"",
        path.display()
    );
    check("a socket by its path", |_| perl(&by_path)).await;
    let name = path.display().to_string();
    let _unnamed = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let by_name = format!(
        "use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack(\"S a*\", AF_UNIX, \"\\0{name}\")) and print \
         \"GOT\""
    );
    check("a socket by its name", |_| perl(&by_name)).await;
    check("datagrams over a pair", |_| perl("use Socket; socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) and print \"GOT\""))
        .await;
    check("the switches of the network", |_| perl("socket(S, 16, 3, 0) and print \"GOT\"")).await;
}

/// A process with a secret in its environment.
struct Victim(Child);

impl Victim {
    fn new() -> Victim {
        let mut command = Command::new("sleep");
        command.arg("600").env("KEY", "GOT").stdin(Stdio::null()).stdout(Stdio::null());
        Victim(command.spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn no_other_process_is_reached() {
    let victim = Victim::new();
    let pid = victim.0.id();
    check("the variables of another process", |_| format!("tr '\\0' '\\n' < /proc/{pid}/environ")).await;
    check("those of the owner", |_| format!("wc -c < /proc/{}/environ && echo GOT", std::process::id())).await;
    check("signals", |_| format!("kill -0 {pid} && echo GOT")).await;
    check("the memory of another process", |_| format!("head -c 0 /proc/{pid}/mem && echo GOT")).await;
    // PTRACE_SEIZE leaves it running.
    let seize = format!("syscall({}, 0x4206, {pid}, 0, 0) == 0 and print \"GOT\"", ptrace_number());
    check("tracing", |_| perl(&seize)).await;
}

fn ptrace_number() -> u32 {
    if cfg!(target_arch = "x86_64") { 101 } else { 117 }
}

#[tokio::test]
async fn calls_that_lead_out_are_refused() {
    // With arguments that the kernel itself refuses in another way: GOT is any other word than "not permitted".
    let refused = |number: u32, arguments: &str| {
        perl(&format!("syscall({number}, {arguments}); print 0 + $! == 1 ? \"no\" : \"GOT\""))
    };
    if cfg!(target_arch = "x86_64") {
        for (name, number, arguments) in [
            ("io_uring_setup", 425, "0, 0"),
            ("bpf", 321, "99, 0, 0"),
            ("keyctl", 250, "99, 0, 0, 0, 0"),
            ("process_vm_readv", 310, "$$, 0, 0, 0, 0, 9"),
            ("mount", 165, "0, 0, 0, 0, 0"),
            ("perf_event_open", 298, "0, 0, -1, -1, 0"),
            ("the second table", 0x4000_0000 + 425, "0, 0"),
        ] {
            check(name, |_| refused(number, arguments)).await;
        }
    }
    check("a box of its own", |_| "unshare --user --map-root-user true && echo GOT".to_string()).await;
}
