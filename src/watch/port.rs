//! System resources of a guarded program. Its port stays taken after the end of roundtable, so that no other program
//! can receive its keys. roundtable may open a file for each of its calls.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that wait to be accepted.
const WAITING: u32 = 1_024;

/// A socket at the port of the proxy that does not listen. The programs that are started while it lives inherit it:
/// after the end of roundtable their calls are refused, and no other user can listen there.
#[derive(Debug)]
pub struct HeldPort {
    _socket: Option<TcpSocket>,
}

/// Listens at an address, and holds its port for the programs that are started.
///
/// # Errors
/// The port is not free.
pub fn listen_held(addr: SocketAddr) -> io::Result<(TcpListener, HeldPort)> {
    let socket = shared_socket(addr)?;
    let listener = socket.listen(WAITING)?;
    let held = listener.local_addr().and_then(shared_socket);
    let held = held.and_then(|socket| inherited(&socket).map(|()| socket));
    if let Err(error) = &held {
        tracing::debug!("the port of the proxy is free after the end: {error}");
    }
    Ok((listener, HeldPort { _socket: held.ok() }))
}

fn shared_socket(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(target_os = "linux")]
    socket.set_reuseport(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn inherited(socket: &TcpSocket) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn inherited(_: &TcpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The limit of open files before it was raised.
#[derive(Debug)]
pub struct FileLimit {
    #[cfg(target_os = "linux")]
    before: rustix::process::Rlimit,
}

/// Raises the limit of open files of this process to its maximum. Each call needs two files.
pub fn raise_open_files() -> FileLimit {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: before.maximum, ..before };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!("the limit of open files stays: {error}");
        }
        FileLimit { before }
    }
    #[cfg(not(target_os = "linux"))]
    FileLimit {}
}

impl FileLimit {
    /// Sets the earlier limit for a program that has inherited the raised one.
    pub fn restore_in(&self, pid: Option<u32>) {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Pid, Resource, prlimit};
            let pid = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
            if let Some(pid) = pid
                && let Err(error) = prlimit(Some(pid), Resource::Nofile, self.before)
            {
                tracing::debug!("the program keeps the raised limit of open files: {error}");
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = pid;
    }
}
