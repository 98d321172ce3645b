//! The requests that Agones' allocator accepts, as its REST interface maps `AllocationRequest` to JSON: the part that Muse uses.
//!
//! A field that is not here or a value that an enumeration does not have is refused, so that a misspelt request fails here as it would there.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A request for one server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AllocationRequest {
    namespace: String,
    #[serde(default)]
    game_server_selectors: Vec<GameServerSelector>,
    #[serde(default)]
    pub(crate) metadata: MetaPatch,
}

impl AllocationRequest {
    /// Returns the first server that the first matching selector selects.
    pub(crate) fn select<'a>(&self, servers: &[&'a Value]) -> Option<&'a Value> {
        self.game_server_selectors.iter().find_map(|selector| {
            let ours = |server: &&&Value| server["metadata"]["namespace"] == self.namespace;
            let mut ours = servers.iter().filter(ours).copied();
            ours.find(|server| selector.selects(server))
        })
    }
}

/// Changes to the object of the server that is given away.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetaPatch {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl MetaPatch {
    /// Returns the changes by the field of the object that they belong to.
    pub(crate) fn patches(&self) -> [(&'static str, &BTreeMap<String, String>); 2] {
        [("labels", &self.labels), ("annotations", &self.annotations)]
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GameServerSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    game_server_state: GameServerState,
    #[serde(default)]
    match_expressions: Vec<LabelMatchExpressions>,
}

impl GameServerSelector {
    fn selects(&self, server: &Value) -> bool {
        let labels = &server["metadata"]["labels"];
        let state = match self.game_server_state {
            GameServerState::Ready => "Ready",
            GameServerState::Allocated => "Allocated",
        };
        let mut wanted = self.match_labels.iter();
        let mut expressions = self.match_expressions.iter();
        server["status"]["state"] == state
            && wanted.all(|(key, value)| labels[key] == *value)
            && expressions.all(|expression| expression.holds(&labels[&expression.key]))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum GameServerState {
    #[default]
    Ready,
    Allocated,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelMatchExpressions {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

impl LabelMatchExpressions {
    fn holds(&self, label: &Value) -> bool {
        let listed = self.values.iter().any(|value| label == value);
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => label.is_string(),
            Operator::DoesNotExist => !label.is_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[test]
fn a_misspelt_request_is_refused() {
    let read = |text: &str| serde_json::from_str::<AllocationRequest>(text).map(drop);
    read(r#"{"namespace": "muse", "gameServerSelectors": [{"gameServerState": "READY"}]}"#)
        .expect("as Agones reads it");
    for wrong in [
        r#"{"namespace": "muse", "game_server_selector": []}"#,
        r#"{"namespace": "muse", "gameServerSelectors": [{"labels": {}}]}"#,
        r#"{"namespace": "muse", "gameServerSelectors": [{"gameServerState": "Ready"}]}"#,
        r#"{"namespace": "muse", "metadata": {"annotation": {}}}"#,
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
