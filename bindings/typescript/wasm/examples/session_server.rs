//! The server of the session that every binding plays (`bindings/capi/examples/session`), for browsers as well: the fourth word that it prints is
//! where they find it.
#![allow(
    clippy::disallowed_methods,
    reason = "a program has clocks and threads"
)]

#[path = "../../../capi/examples/session/proxy.rs"]
mod proxy;
#[path = "../../../capi/examples/session/rules.rs"]
#[allow(dead_code, reason = "some of it is the client's")]
mod rules;
#[path = "../../../capi/examples/session/server.rs"]
mod server;

use muse::drivers::{EndpointDriver, WebListener, WebOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    server::serve(&[], None, |server: EndpointDriver| {
        let web = WebListener::bind(WebOptions::new(server.local_addr()?))?;
        let address = web.address().to_string();
        Ok((server.with_web(web)?, address))
    })
}
