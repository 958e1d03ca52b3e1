//! What stands ready to be measured: the echo, and the Caribous before it.
//!
//! Owns which Caribou a way to call leads through. Only what the plan measures is started; what cannot be started ends
//! the run. Keeps no invariant.

use std::path::Path as FilePath;

use anyhow::Context;
use caribou_core::era::Era;

use crate::Plan;
use crate::call::{HttpCaller, Path};
use crate::started::{Caribou, HttpEcho};

/// Servers of the long list, each with [`TOOLS_EACH`] tools: entries of their own, all served by one process.
const SERVERS: u16 = 50;

/// Tools of each of them.
const TOOLS_EACH: u16 = 10;

/// Threads of conversation that the callers share: callers of one agent share a session, several agents do not.
const CONVERSATIONS: usize = 8;

/// Everything that was started.
pub(crate) struct Stand {
    era: Era,
    // The Caribous stand first: they are ended before their upstreams.
    /// Configured for both echo servers, and following that file.
    pub(crate) following: Option<Caribou>,
    /// The same with its file gone: the difference is what following costs.
    without_file: Option<Caribou>,
    /// Without identity, audit log and header chain.
    bare: Option<Caribou>,
    /// With all three: the difference is what they cost.
    guarded: Option<Caribou>,
    listing: Option<(Caribou, HttpEcho)>,
    /// The HTTP echo.
    pub(crate) echo: HttpEcho,
}

impl Stand {
    /// Starts what the plan measures, with `program` as Caribou.
    ///
    /// # Errors
    /// Something cannot be started.
    pub(crate) fn start(plan: &Plan, program: &FilePath) -> anyhow::Result<Self> {
        let era = plan.era();
        let echo = HttpEcho::start(era, 1)?;
        let of_following = [Path::CaribouHttp, Path::CaribouStdio, Path::CaribouMcp, Path::CaribouMcpModern];
        let following = if of_following.iter().any(|path| plan.measures(*path)) {
            Some(Caribou::start(program, &echo, era)?)
        } else {
            None
        };
        let without_file = if plan.measures(Path::CaribouNoFile) {
            let caribou = Caribou::start(program, &echo, era)?;
            caribou.take_file_away()?;
            Some(caribou)
        } else {
            None
        };
        let bare = plan.measures(Path::CaribouBare).then(|| Caribou::start_bare(program, &echo)).transpose()?;
        let guarded =
            plan.measures(Path::CaribouGuarded).then(|| Caribou::start_guarded(program, &echo)).transpose()?;
        let listing = if plan.measures(Path::CaribouList) {
            let upstream = HttpEcho::start(era, TOOLS_EACH)?;
            Some((Caribou::start_with_many(program, &upstream, SERVERS)?, upstream))
        } else {
            None
        };
        Ok(Self { era, following, without_file, bare, guarded, listing, echo })
    }

    /// The Caribou on this way; `None` on a direct one.
    pub(crate) fn caribou(&self, path: Path) -> Option<&Caribou> {
        match path {
            Path::DirectHttp | Path::DirectStdio => None,
            Path::CaribouHttp | Path::CaribouStdio | Path::CaribouMcp | Path::CaribouMcpModern => {
                self.following.as_ref()
            }
            Path::CaribouNoFile => self.without_file.as_ref(),
            Path::CaribouBare => self.bare.as_ref(),
            Path::CaribouGuarded => self.guarded.as_ref(),
            Path::CaribouList => self.listing.as_ref().map(|(caribou, _)| caribou),
        }
    }

    /// One of the callers on a way that leads over HTTP, the `n`th.
    ///
    /// # Errors
    /// What it calls was not started or cannot be reached.
    pub(crate) fn caller(&self, path: Path, n: usize) -> anyhow::Result<HttpCaller> {
        if path == Path::DirectHttp {
            return HttpCaller::direct(self.echo.address, self.era);
        }
        let caribou = self.caribou(path).context("no Caribou was started")?;
        let tool = match path {
            Path::CaribouList => return HttpCaller::listing(caribou.address, usize::from(SERVERS * TOOLS_EACH)),
            Path::CaribouStdio => caribou.stdio_tool()?,
            _ => caribou.http_tool()?,
        };
        let thread = format!("t{}", n % CONVERSATIONS);
        match path {
            Path::CaribouMcp => return HttpCaller::over_mcp(caribou.address, Era::Legacy, tool, &thread),
            Path::CaribouMcpModern => return HttpCaller::over_mcp(caribou.address, Era::Modern, tool, &thread),
            _ => {}
        }
        match caribou.bearer() {
            Some(bearer) => HttpCaller::identified(caribou.address, tool, &thread, bearer),
            None => HttpCaller::through(caribou.address, tool, &thread),
        }
    }
}
