//! A TCP proxy that can be cut, as a network is: bytes are held, or connections are closed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// A proxy to one address. Its threads end with the test's process.
pub struct CutProxy {
    port: u16,
    link: Arc<ProxyLink>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Whole,
    /// Bytes are held. Bytes sent meanwhile arrive when the link is whole again, as TCP does it.
    Silent,
    /// Connections are closed.
    Closed,
}

struct ProxyLink {
    state: Mutex<LinkState>,
    changed: Condvar,
    open: Mutex<Vec<TcpStream>>,
}

impl CutProxy {
    /// A proxy to this host and port.
    pub fn to(target: (&str, u16)) -> Self {
        let target = (target.0.to_owned(), target.1);
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (state, changed) = (Mutex::new(LinkState::Whole), Condvar::new());
        let link = Arc::new(ProxyLink { state, changed, open: Mutex::default() });
        let serving = Arc::clone(&link);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (link, target) = (Arc::clone(&serving), target.clone());
                thread::spawn(move || link.connect(client, &target).ok());
            }
        });
        Self { port, link }
    }

    /// Its host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Holds all bytes, and closes nothing.
    pub fn cut(&self) {
        self.link.set(LinkState::Silent);
    }

    /// Closes all connections, and each new one.
    pub fn close(&self) {
        self.link.set(LinkState::Closed);
        for stream in self.link.open.lock().expect("a lock").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes bytes again, those that were held first.
    pub fn remove_fault(&self) {
        self.link.set(LinkState::Whole);
    }
}

impl Drop for CutProxy {
    fn drop(&mut self) {
        self.close();
    }
}

impl ProxyLink {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().expect("a lock")
    }

    fn set(&self, state: LinkState) {
        *self.state() = state;
        self.changed.notify_all();
    }

    /// Waits while bytes are held; whether the link is open then.
    fn wait(&self) -> bool {
        let state = self.state();
        let state = self.changed.wait_while(state, |state| *state == LinkState::Silent);
        *state.expect("a lock") == LinkState::Whole
    }

    fn connect(self: Arc<Self>, client: TcpStream, target: &(String, u16)) -> std::io::Result<()> {
        if !self.wait() {
            return Ok(());
        }
        let server = TcpStream::connect((target.0.as_str(), target.1))?;
        let ends = [(client.try_clone()?, server.try_clone()?), (server, client)];
        {
            let mut open = self.open.lock().expect("a lock");
            for (from, _) in &ends {
                open.push(from.try_clone()?);
            }
            if *self.state() == LinkState::Closed {
                return Ok(());
            }
        }
        for (from, to) in ends {
            let link = Arc::clone(&self);
            thread::spawn(move || link.pass(from, to));
        }
        Ok(())
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            if !self.wait() || read == 0 || to.write_all(&bytes[..read]).is_err() {
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                return;
            }
        }
    }
}
