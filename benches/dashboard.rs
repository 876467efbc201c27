//! The dashboard under a flood of facts: how soon a key is answered, how many frames are written.
//! And what its first paint costs, and its idling, measured on the real program in a terminal.

mod paired;

use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc as std_mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use futures::Stream;
use paired::{median, own_folders, report};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use ratatui::layout::Size as TerminalSize;
use roundtable::bench::{
    AppState, Canvas, Console, DashboardConfig, DisplaySettings, Editor, EffectResult, LiveModels,
    Pager, ProcessSignal, RequestId, Services, Size, Theme, Trust, run_dashboard,
};
use roundtable::{
    Bus, Engine, EngineSettings, EventKind, Launch, ProxyMode, ScenarioOrigin, Schedule, SpanId,
    load,
};
use tokio::sync::mpsc;

const SIZE: TerminalSize = TerminalSize::new(200, 50);
const FACTS_A_SECOND: u64 = 100_000;
const KEYS: usize = 30;

/// A terminal whose keys come from a channel and whose frames go to another.
struct Bench {
    keys: Option<mpsc::UnboundedReceiver<Input>>,
    frames: std_mpsc::Sender<(Instant, Vec<u8>)>,
}

struct Keys(mpsc::UnboundedReceiver<Input>);

impl Stream for Keys {
    type Item = io::Result<Input>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|key| key.map(Ok))
    }
}

impl Console for Bench {
    type FrameSurface = Canvas;
    type KeyInput = Keys;

    fn surface(&mut self) -> io::Result<Canvas> {
        let frames = self.frames.clone();
        Canvas::new(SIZE, move |bytes| {
            frames
                .send((Instant::now(), bytes.to_vec()))
                .map_err(|_| io::ErrorKind::BrokenPipe.into())
        })
    }

    fn input(&mut self) -> io::Result<Keys> {
        Ok(Keys(self.keys.take().unwrap_or_else(|| mpsc::unbounded_channel().1)))
    }

    fn size(&self) -> TerminalSize {
        SIZE
    }

    fn leave(&mut self) {}

    fn enter(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> bool {
        true
    }

    fn editor(&self) -> Editor {
        Box::new(|_| Ok(()))
    }
    fn pager(&self) -> Pager {
        Box::new(|_| Ok(()))
    }
}

fn key(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Publishes at a steady rate until told to stop; gives how many.
fn flood(bus: Bus, stop: Arc<AtomicBool>, published: Arc<AtomicU64>) {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let due = start.elapsed().as_micros() as u64 * FACTS_A_SECOND / 1_000_000;
        let mut done = published.load(Ordering::Relaxed);
        while done < due {
            bus.publish(SpanId(7), EventKind::CallAnswered { attempts: done as u32 });
            done += 1;
        }
        published.store(done, Ordering::Relaxed);
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// What the flood came to.
struct Flood {
    latencies: Vec<f64>,
    frames_a_second: f64,
    facts_a_second: f64,
}

/// Opens and closes the help while a paused run is flooded, and times each key until the frame
/// that shows it has been handed to the terminal.
fn measure_flood() -> Flood {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (type_key, keys) = mpsc::unbounded_channel();
    let (frames, seen) = std_mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let published = Arc::new(AtomicU64::new(0));
    let text = include_str!("../scenarios/checkout-launch.toml");
    let scenario = load(text, ScenarioOrigin::Shipped("scenarios/checkout-launch.toml"), &[]);
    let launch = Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..Launch::scripted(Arc::new(scenario.expect("a good scenario")), true)
    };
    let engine = Engine::new(EngineSettings::default());
    let (services, answers) = {
        let _runs_go_on_in = runtime.enter();
        let (models, trust) = (LiveModels::new(ProxyMode::Direct), Trust::saved_in(None));
        Services::new(engine, models, trust, None, std::env::temp_dir())
    };
    let bus = Arc::new(Mutex::new(None));
    let looped = {
        let (services, bus) = (services.clone(), Arc::clone(&bus));
        std::thread::spawn(move || {
            runtime.block_on(async {
                let run = services.engine.start(launch);
                *bus.lock().expect("the bus") = Some(run.bus().clone());
                let facts = Box::new(run.first_reader());
                services.answer(EffectResult::Started {
                    request: RequestId(1),
                    run,
                    facts,
                    launch: None,
                });
                let size = Size { cols: SIZE.width, rows: SIZE.height };
                let state = AppState::new(size, DisplaySettings::default(), Vec::new());
                let opening = DashboardConfig {
                    state,
                    theme: Theme::default(),
                    terminal: Default::default(),
                };
                let console = Bench { keys: Some(keys), frames };
                run_dashboard(console, opening, services, answers).await
            })
        })
    };
    // A frame writes only what changed, so what it shows is looked up on an emulated screen.
    let mut screen = vt100::Parser::new(SIZE.height, SIZE.width, 0);
    let mut frames = 0u64;
    let mut wait_for = |what: &str, there: bool, since: Instant| loop {
        if screen.screen().contents().contains(what) == there {
            break Duration::ZERO;
        }
        let (at, bytes) = seen.recv_timeout(Duration::from_secs(20)).expect("a frame");
        frames += 1;
        screen.process(&bytes);
        if screen.screen().contents().contains(what) == there {
            break at.saturating_duration_since(since);
        }
    };
    wait_for("Round table", true, Instant::now());
    let bus = loop {
        if let Some(bus) = bus.lock().expect("the bus").clone() {
            break bus;
        }
    };
    let flooding = {
        let (stop, published) = (Arc::clone(&stop), Arc::clone(&published));
        std::thread::spawn(move || flood(bus, stop, published))
    };
    const HELP: &str = "type to search";
    let (start, mut latencies) = (Instant::now(), Vec::new());
    while latencies.len() < KEYS {
        // At a moment of its own within a frame.
        std::thread::sleep(Duration::from_millis(41 + latencies.len() as u64 * 7 % 33));
        let pressed = Instant::now();
        type_key.send(key(KeyCode::Char('?'))).expect("the loop is there");
        latencies.push(wait_for(HELP, true, pressed).as_secs_f64() * 1e3);
        type_key.send(key(KeyCode::Esc)).expect("the loop is there");
        wait_for(HELP, false, pressed);
    }
    let took = start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    flooding.join().expect("the flood");
    let facts_a_second = published.load(Ordering::Relaxed) as f64 / took;
    services.answer(EffectResult::Signal(ProcessSignal::End(143)));
    drop(type_key);
    let _ = looped.join();
    Flood { latencies, frames_a_second: frames as f64 / took, facts_a_second }
}

/// CPU time of a process in milliseconds, from its `/proc` entry.
fn cpu_ms(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks as f64 * 10.0)
}

/// Voluntary and involuntary context switches of all threads of a process: each wake-up is one.
fn switches(pid: u32) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut sum = 0;
    for task in tasks {
        let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        for line in status.lines().filter(|line| line.contains("ctxt_switches")) {
            sum += line.split_whitespace().last()?.parse::<u64>().ok()?;
        }
    }
    Some(sum)
}

/// Starts the program in a terminal; gives CPU until the first whole screen and wake-ups of ten
/// seconds of idling after it.
fn measure_idle() -> Option<(f64, u64, usize)> {
    let program = env!("CARGO_BIN_EXE_roundtable");
    let pty = native_pty_system()
        .openpty(PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 })
        .ok()?;
    let home = tempfile::tempdir().ok()?;
    let mut command = CommandBuilder::new(program);
    own_folders(home.path()).into_iter().for_each(|(name, folder)| command.env(name, folder));
    let mut child = pty.slave.spawn_command(command).ok()?;
    let pid = child.process_id()?;
    let mut reader = pty.master.try_clone_reader().ok()?;
    let (bytes, came) = std_mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut buffer = [0u8; 65536];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            if bytes.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut screen = String::new();
    while !screen.contains("Scenarios") {
        screen += &String::from_utf8_lossy(&came.recv_timeout(Duration::from_secs(20)).ok()?);
    }
    let first_paint = cpu_ms(pid)?;
    // Quiet is when nothing more is written for a while.
    while came.recv_timeout(Duration::from_secs(2)).is_ok() {}
    let before = switches(pid)?;
    let written = std::iter::from_fn(|| came.recv_timeout(Duration::from_secs(10)).ok())
        .map(|bytes| bytes.len())
        .sum();
    let woken = switches(pid)?.saturating_sub(before);
    child.kill().ok()?;
    Some((first_paint, woken, written))
}

fn main() -> ExitCode {
    let flood = measure_flood();
    let slowest = flood.latencies.iter().copied().fold(0.0, f64::max);
    report(
        &format!("key under {:.0} facts a second, slowest of {KEYS}", flood.facts_a_second),
        &format!("{slowest:.1} ms (median {:.1})", median(flood.latencies)),
        "33 ms",
    );
    // An answer to a key may come three quarters of a frame early, never two in a row.
    let frames = format!("{:.1}", flood.frames_a_second);
    report("frames a second in the flood, with keys", &frames, "48; 30 without keys");
    match measure_idle() {
        Some((first_paint, woken, written)) => {
            report("CPU until the first paint", &format!("{first_paint:.0} ms"), "50 ms");
            report("wake-ups in 10 s of idling", &woken.to_string(), "the terminal's alone");
            report("bytes written in 10 s of idling", &written.to_string(), "0");
        }
        None => println!("first paint and idling: not measured on this system"),
    }
    ExitCode::SUCCESS
}
