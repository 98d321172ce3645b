//! The right to open a room at a relay, from the master.

use muse_drivers::master::MasterRefusal;
use muse_master_client::api::RelayToken;
use muse_master_client::messages;
use muse_transport::token::ConnectToken;

/// The right to open a room at a relay that serves the players of a master alone, for an hour: what [`Listen::room`](crate::Listen::room) and
/// [`Listen::room_token`](crate::Listen::room_token) take.
#[derive(Clone, Debug)]
pub struct RelayPass {
    /// Host and port of the relay.
    pub address: String,
    /// The token to show there.
    pub token: ConnectToken,
}

impl RelayPass {
    /// Reads the master's answer.
    pub(super) fn read(body: &str) -> Result<Self, MasterRefusal> {
        let damaged = |message: String| MasterRefusal {
            status: 200,
            code: "damaged".to_owned(),
            message: format!("the master's token: {message}"),
        };
        let answer = messages::decode(body).map_err(|error| damaged(error.to_string()))?;
        let RelayToken { address, token } = answer;
        let token = ConnectToken::from_text(&token).map_err(|error| damaged(error.to_string()))?;
        Ok(Self { address, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_no_token_is_refused_with_a_reason() {
        for body in ["", "{}", r#"{"address":"relay.example:7788","token":"?"}"#] {
            let refusal = RelayPass::read(body).expect_err("no token");
            assert!(refusal.to_string().starts_with("the master's token: "));
        }
    }
}
