//! Players who sign in at a master, one after the other, each from an address of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use muse_bench_workload::control::Control;
use serde::{Deserialize, Serialize};

use super::requests::Reach;
use super::{block_on, ready};
use crate::statistics::quantile;

/// The master, and how players sign in.
#[derive(Args)]
pub(crate) struct SignInArguments {
    /// The master.
    #[arg(long)]
    master: SocketAddr,
    /// Its certificate, if it serves TLS.
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// Sign in by password, and not as guests.
    #[arg(long)]
    by_password: bool,
}

/// The times that sign-ins took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SignInReport {
    /// Players who tried.
    pub(crate) count: u64,
    /// Those who were refused or not answered in time.
    pub(crate) failed: u64,
    pub(crate) ms_p50: f64,
    /// A failed sign-in counts as one that took as long as players wait at the most.
    pub(crate) ms_p99: f64,
    /// Bytes sent, with the headers of TCP and IP.
    pub(crate) bytes: u64,
}

/// Signs in from `go` to `stop`.
pub(super) fn run(arguments: &SignInArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let reach = Reach::new(arguments.master, arguments.certificate.as_deref())?;
    block_on(async {
        register(&reach).await?;
        ready(&control).await;
        let (mut times, mut failed, before) = (Vec::new(), 0, reach.bytes());
        while !control.has_stopped() {
            let (begun, number) = (Instant::now(), times.len());
            let signed_in = tokio::time::timeout(PATIENCE, async {
                match arguments.by_password {
                    true => reach
                        .ask(address(number), "POST /v1/sign-in", ACCOUNT)
                        .await
                        .map(drop),
                    false => reach
                        .guest(address(number), &format!("player {number}"))
                        .await
                        .map(drop),
                }
            });
            let took = match signed_in.await {
                Ok(Ok(())) => begun.elapsed(),
                Ok(Err(error)) => {
                    eprintln!("{error:#}");
                    failed += 1;
                    PATIENCE
                }
                Err(_) => {
                    failed += 1;
                    PATIENCE
                }
            };
            times.push(took.as_secs_f64() * 1e3);
            // As many as a busy game has.
            tokio::time::sleep(PAUSE).await;
        }
        times.sort_by(f64::total_cmp);
        control.result(&SignInReport {
            count: times.len() as u64,
            failed,
            ms_p50: quantile(&times, 0.5).unwrap_or_default(),
            ms_p99: quantile(&times, 0.99).unwrap_or_default(),
            bytes: reach.bytes() - before,
        });
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the account of [`ACCOUNT`].
async fn register(reach: &Reach) -> anyhow::Result<()> {
    let home = address(usize::MAX);
    let token = reach.guest(home, "somebody with a password").await?;
    let head = format!("PUT /v1/account/password\r\nAuthorization: Bearer {token}");
    reach.ask(home, &head, ACCOUNT).await?;
    Ok(())
}

/// An address for every number.
fn address(number: usize) -> Ipv4Addr {
    let [_, _, high, low] = (number as u32).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// The name and password of an honest player.
const ACCOUNT: &str = r#"{"name":"ada","password":"correct horse battery"}"#;
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(10);
