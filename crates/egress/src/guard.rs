//! The guard: a resolver that answers with admitted addresses only, and a look at each URL before it is asked.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use caribou_core::network::AllowedNetworks;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// A name server that says nothing for this long will not say anything.
const RESOLVE: Duration = Duration::from_secs(10);

/// Where guarded requests may go. Cheap to clone.
///
/// A client is guarded when it is built with [`Guard::resolver`], uses no proxy, which would resolve names itself, and
/// follows no redirect by itself; and when [`Guard::check`] is asked about every URL it is sent to.
#[derive(Clone, Debug)]
pub struct Guard {
    allowed: Arc<AllowedNetworks>,
}

/// The address of a guarded request is not of the public internet. Names nothing that a stranger could map a network
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its host is no address of the public internet; personal connections reach private networks only where the \
     operator lists them in `network.allow_cidrs`"
)]
pub struct Refused;

impl Guard {
    /// Lets through the public internet and what is listed.
    pub fn new(allowed: AllowedNetworks) -> Self {
        Self { allowed: Arc::new(allowed) }
    }

    /// Resolves names to admitted addresses only.
    pub fn resolver(&self) -> Arc<dyn Resolve> {
        Arc::new(Resolver { allowed: self.allowed.clone() })
    }

    /// Judges the host of a URL where it is an address: a client connects to one without asking its resolver.
    ///
    /// # Errors
    /// It is an address that is not admitted, or there is no host at all.
    pub fn check(&self, url: &Url) -> Result<(), Refused> {
        let admits = |address: IpAddr| if self.allowed.admits(address) { Ok(()) } else { Err(Refused) };
        match url.host() {
            Some(Host::Domain(_)) => Ok(()),
            Some(Host::Ipv4(address)) => admits(address.into()),
            Some(Host::Ipv6(address)) => admits(address.into()),
            None => Err(Refused),
        }
    }
}

/// The refusal that made a request fail, if one did.
pub fn refusal_in(error: &(dyn Error + 'static)) -> Option<Refused> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(*refused);
        }
        cause = error.source();
    }
    None
}

struct Resolver {
    allowed: Arc<AllowedNetworks>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let asked = tokio::net::lookup_host((name.as_str(), 0));
            let found = tokio::time::timeout(RESOLVE, asked).await??;
            Ok(Box::new(admitted(&allowed, found)?.into_iter()) as Addrs)
        })
    }
}

/// The admitted ones of these addresses. A name may stand for several; what is not admitted is never connected to.
fn admitted(
    allowed: &AllowedNetworks,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let (admitted, refused): (Vec<_>, Vec<_>) = found.partition(|address| allowed.admits(address.ip()));
    if admitted.is_empty() && !refused.is_empty() { Err(Refused.into()) } else { Ok(admitted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(allowed: &[&str]) -> Guard {
        Guard::new(AllowedNetworks(allowed.iter().map(|block| block.parse().unwrap()).collect()))
    }

    fn client(guard: &Guard) -> reqwest::Client {
        // Another test of this process may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().dns_resolver(guard.resolver()).build().unwrap()
    }

    #[test]
    fn addresses_written_into_a_url_are_judged_in_every_spelling() {
        let guard = guard(&[]);
        for refused in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://[::1]:80/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert_eq!(guard.check(&Url::parse(refused).unwrap()), Err(Refused), "{refused}");
        }
        for passed in ["http://8.8.8.8/", "https://example.org/", "http://localhost/"] {
            assert_eq!(guard.check(&Url::parse(passed).unwrap()), Ok(()), "{passed}");
        }
        assert_eq!(guard.check(&Url::parse("data:x").unwrap()), Err(Refused));
    }

    #[test]
    fn of_several_addresses_only_the_admitted_ones_are_handed_out() {
        let found = ["10.0.0.1:0", "8.8.8.8:0", "[::1]:0"].map(|address| address.parse::<SocketAddr>().unwrap());
        let public = AllowedNetworks::default();
        assert_eq!(admitted(&public, found.into_iter()).unwrap(), [found[1]]);
        assert!(admitted(&public, [found[0]].into_iter()).unwrap_err().is::<Refused>());
        assert!(admitted(&public, std::iter::empty()).unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_name_that_means_this_machine_is_not_connected_to_unless_it_is_listed() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
        let refused = client(&guard(&[])).get(&url).send().await.unwrap_err();
        assert_eq!(refusal_in(&refused), Some(Refused), "{refused:?}");
        assert!(refused.is_connect(), "nothing was sent");

        let listed = client(&guard(&["127.0.0.1"]));
        let asked = tokio::spawn(async move { listed.get(&url).send().await });
        let (connection, _) = listener.accept().await.unwrap();
        drop(connection);
        assert_eq!(refusal_in(&asked.await.unwrap().unwrap_err()), None);
    }
}
