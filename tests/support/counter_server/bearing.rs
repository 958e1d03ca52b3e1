//! How badly a counter behaves: what it starts, ignores and says without being asked.

use std::io::{Write, stdout};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::diary::{Diary, boot_clock_ns};
use super::process::{LIFE, beat, pause};

/// Lists, with commas between, how a counter behaves.
const BEARING: &str = "COUNTER_BEARING";

/// A daemon that nobody ended goes by itself, so that a failed test leaves nothing for long.
const DAEMON_LASTS: Duration = Duration::from_secs(300);

/// The words on the command line of the two steps of a daemon.
const STEPS: [&str; 2] = ["daemon-step", "daemon"];

/// One line that says nothing, and one that is a message.
const NOISE: [&str; 2] = [
    "this is no message, and there is more of it\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":\"noise\"}}\n",
];

/// Pairs of lines that are written in one go, and the pause between two.
const NOISE_AT_ONCE: usize = 100;
const FLOOD_PAUSE: Duration = Duration::from_millis(5);

/// How a counter behaves besides counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bearing {
    /// It starts a daemon: a grandchild in a session of its own, whose parent has gone, and which ignores SIGTERM.
    pub starts_daemon: bool,
    /// It leaves neither at the end of its input nor on SIGTERM.
    pub is_stubborn: bool,
    /// It writes to stdout what nobody asked for, without an end.
    pub floods: bool,
}

impl Bearing {
    /// Everything at once.
    pub const WORST: Self = Self { starts_daemon: true, is_stubborn: true, floods: true };

    /// The variable that makes a counter behave so.
    pub(super) fn variable(self) -> (&'static str, String) {
        let words = [(self.starts_daemon, "daemon"), (self.is_stubborn, "stubborn"), (self.floods, "flood")];
        let words: Vec<&str> = words.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
        (BEARING, words.join(","))
    }

    /// How this process is to behave.
    pub(super) fn of_this_process() -> Self {
        let words = std::env::var(BEARING).unwrap_or_default();
        let has = |word| words.split(',').any(|own| own == word);
        Self { starts_daemon: has("daemon"), is_stubborn: has("stubborn"), floods: has("flood") }
    }

    /// Behaves so from now on, as this life.
    pub(super) fn begin(self, life: &str) {
        if self.starts_daemon {
            step(STEPS[0], life).status().expect("this binary runs again");
        }
        if self.is_stubborn {
            ignore_sigterm();
        }
        if self.floods {
            std::thread::spawn(flood);
        }
    }
}

/// Whether this process is a daemon, or on the way to one; then it does that and never comes back.
pub(super) fn become_daemon_if_told() {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Ok(life) = std::env::var(LIFE) else { return };
    if word == STEPS[0] {
        rustix::process::setsid().expect("no leader of a group yet");
        // Whoever leads a session could get a terminal: a daemon is its child, and an orphan.
        let _orphan = step(STEPS[1], &format!("{life}-daemon")).spawn().expect("this binary runs again");
        std::process::exit(0);
    }
    if word == STEPS[1] {
        ignore_sigterm();
        let diary = Diary::of_this_process();
        diary.write("daemon", &life, &serde_json::json!({}));
        let ends = boot_clock_ns() + u64::try_from(DAEMON_LASTS.as_nanos()).expect("minutes");
        beat(&diary, &life, || boot_clock_ns() < ends);
        std::process::exit(0);
    }
}

/// The next step of a daemon. Its stdout stays that of the server: a reader who waits for its end waits for the daemon.
fn step(word: &str, life: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a process knows its own path"));
    command.arg(word).env(LIFE, life).stdin(Stdio::null());
    command
}

/// Caught and dropped.
fn ignore_sigterm() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
            let mut signals = signals.expect("SIGTERM can be caught");
            let _ = ready.send(());
            while signals.recv().await.is_some() {}
        });
    });
    let _ = is_ready.recv();
}

fn flood() {
    let noise = NOISE.concat().repeat(NOISE_AT_ONCE);
    // One lock for each go, so that answers find their way between. The pause leaves the machine to others: beyond
    // forty thousand lines a second a reader only waits for its turn.
    while stdout().lock().write_all(noise.as_bytes()).is_ok() {
        pause(FLOOD_PAUSE);
    }
}
