//! What the machine itself costs at the moment: one message to another process and back over loopback, with nothing in
//! between, and with both processors idle meanwhile.
//!
//! Two wakes and two packets: the least that a call at another replica costs. On a virtual machine waking an idle
//! processor is most of it, and that differs by the hour; a figure in microseconds says something only beside this one.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use crate::proc::{cpu_below, own_cpu};
use crate::started::Started;

/// A call and its answer are about as long.
const MESSAGE: usize = 1_024;

/// CPU time is counted in steps of 10 ms.
const LENGTH: Duration = Duration::from_secs(1);

/// How long a message may take to come back.
const PATIENCE: Duration = Duration::from_secs(10);

/// A bare round trip.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Yardstick {
    /// How long it took, on average.
    pub(crate) took_us: f64,
    /// CPU time of both processes.
    pub(crate) cpu_us: f64,
}

impl Yardstick {
    /// Takes it.
    ///
    /// # Errors
    /// This program cannot be started again.
    pub(crate) fn take() -> anyhow::Result<Self> {
        let (other, address) = Started::listening_as("bounce")?;
        let mut stream = TcpStream::connect(address).context("connecting to the other process")?;
        ready(&stream)?;
        let cpu = || -> anyhow::Result<Duration> { Ok(own_cpu()? + cpu_below(other.pid())?) };
        let (before, start) = (cpu()?, Instant::now());
        let mut trips = 0_u32;
        let mut message = [1; MESSAGE];
        while start.elapsed() < LENGTH {
            stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)).context("a bare round trip")?;
            trips += 1;
        }
        let each = |length: Duration| length.as_secs_f64() * 1e6 / f64::from(trips.max(1));
        Ok(Self { took_us: each(start.elapsed()), cpu_us: each(cpu()?.saturating_sub(before)) })
    }
}

impl std::fmt::Display for Yardstick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { took_us, cpu_us } = self;
        write!(f, "a bare round trip between two processes takes {took_us:.0} µs and costs {cpu_us:.0} µs of CPU")
    }
}

fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))
}

/// The other process: says where it listens, and sends back what comes from the first who connects, to the end.
///
/// # Errors
/// It cannot listen.
pub(crate) fn bounce() -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a socket on loopback")?;
    println!("LISTENING http://{}", listener.local_addr()?);
    let (mut stream, _) = listener.accept().context("waiting for the generator")?;
    ready(&stream)?;
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).and_then(|()| stream.write_all(&message)).is_ok() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_with_its_units() {
        let yardstick = Yardstick { took_us: 41.6, cpu_us: 37.2 };
        assert_eq!(yardstick.to_string(), "a bare round trip between two processes takes 42 µs and costs 37 µs of CPU");
    }
}
