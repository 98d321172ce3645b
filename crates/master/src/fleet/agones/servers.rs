//! The cluster's game servers: a table, kept by the events of a watch.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::DynamicObject;
use muse_master_client::{MatchId, ServerId};
use serde::Deserialize;

use super::{Counts, MATCH, server_id};

/// The servers of the fleet, as last heard.
#[derive(Debug, Default)]
pub(super) struct Servers {
    found: BTreeMap<ServerId, Found>,
    /// Servers that a list has named so far; those that it does not name are gone.
    listed: Option<BTreeSet<ServerId>>,
}

/// One server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) standing: Standing,
    pub(super) port: u16,
    name: String,
    uid: String,
    node: String,
    match_id: Option<MatchId>,
    /// It has been told to end.
    released: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Starting,
    Ready,
    Busy,
}

/// An event of a watch.
pub(super) enum Change {
    /// A list of everything begins.
    Begin,
    /// A server is as it is here.
    Seen(DynamicObject),
    /// A server is deleted.
    Gone(DynamicObject),
    /// The list is complete.
    Complete,
}

/// The part of a `GameServer` that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    state: String,
    node_name: String,
    ports: Vec<Port>,
}

#[derive(Debug, Deserialize)]
struct Port {
    port: u16,
}

impl Servers {
    /// Takes a change; servers that are gone by it.
    pub(super) fn apply(&mut self, change: Change) -> Vec<ServerId> {
        match change {
            Change::Begin => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Change::Seen(object) => {
                let server = server_id(&object.name_any());
                if let Some(listed) = &mut self.listed {
                    listed.insert(server);
                }
                self.see(server, &object).into_iter().collect()
            }
            Change::Gone(object) => {
                let server = server_id(&object.name_any());
                let gone = self.found.remove(&server);
                gone.map(|_| server).into_iter().collect()
            }
            Change::Complete => {
                let Some(listed) = self.listed.take() else {
                    return Vec::new();
                };
                let known = self.found.keys().copied();
                let gone: Vec<ServerId> = known.filter(|server| !listed.contains(server)).collect();
                self.found.retain(|server, _| listed.contains(server));
                gone
            }
        }
    }

    fn see(&mut self, server: ServerId, object: &DynamicObject) -> Option<ServerId> {
        let status = object.data.get("status").cloned().unwrap_or_default();
        let status: Status = serde_json::from_value(status).unwrap_or_default();
        let standing = match status.state.as_str() {
            "Ready" => Standing::Ready,
            "Allocated" | "Reserved" => Standing::Busy,
            "Shutdown" | "Error" | "Unhealthy" => {
                return self.found.remove(&server).map(|_| server);
            }
            // `RequestReady` among them: asked for, and not yet so.
            _ => Standing::Starting,
        };
        let annotation = object.annotations().get(MATCH);
        let match_id = annotation.and_then(|text| text.parse().ok()).map(MatchId);
        let uid = object.uid().unwrap_or_default();
        let known = self.found.get(&server);
        let found = Found {
            standing,
            port: status.ports.first().map_or(0, |first| first.port),
            name: object.name_any(),
            node: status.node_name,
            match_id: match_id.filter(|_| standing == Standing::Busy),
            released: known.is_some_and(|known| known.released && known.uid == uid),
            uid,
        };
        self.found.insert(server, found);
        None
    }

    /// Servers with the match that each was allocated for.
    pub(super) fn hosts(&self) -> Vec<(ServerId, MatchId)> {
        let found = self.found.iter();
        found
            .filter_map(|(server, found)| Some((*server, found.match_id?)))
            .collect()
    }

    /// Machines with so many matches or more, in order of their names.
    pub(super) fn full_hosts(&self, matches_max: usize) -> Vec<String> {
        let mut busy: BTreeMap<&str, usize> = BTreeMap::new();
        for found in self.found.values() {
            if found.standing == Standing::Busy && !found.node.is_empty() {
                *busy.entry(&found.node).or_default() += 1;
            }
        }
        let full = busy.into_iter().filter(|(_, count)| *count >= matches_max);
        full.map(|(node, _)| node.to_owned()).collect()
    }

    /// This server is to end. True if it is there and was not told before.
    pub(super) fn release(&mut self, server: ServerId) -> bool {
        let found = self.found.get_mut(&server);
        found.is_some_and(|found| !std::mem::replace(&mut found.released, true))
    }

    /// It could not be ended; it may be told again.
    pub(super) fn keep(&mut self, server: ServerId) {
        if let Some(found) = self.found.get_mut(&server) {
            found.released = false;
        }
    }

    /// Name and unique id.
    pub(super) fn named(&self, server: ServerId) -> Option<(String, String)> {
        let found = self.found.get(&server)?;
        Some((found.name.clone(), found.uid.clone()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ServerId, &Found)> {
        self.found.iter().map(|(server, found)| (*server, found))
    }

    pub(super) fn counts(&self) -> Counts {
        let count = |standing| {
            let found = self.found.values();
            found.filter(|found| found.standing == standing).count()
        };
        Counts {
            starting: count(Standing::Starting),
            ready: count(Standing::Ready),
            busy: count(Standing::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, state: &str, node: &str, match_id: Option<u64>) -> DynamicObject {
        let annotations = match match_id {
            Some(id) => json!({ MATCH: id.to_string() }),
            None => json!({}),
        };
        let object = json!({
            "apiVersion": "agones.dev/v1", "kind": "GameServer",
            "metadata": { "name": name, "uid": format!("uid of {name}"), "annotations": annotations },
            "status": { "state": state, "nodeName": node, "address": "192.0.2.1", "ports": [{ "name": "game", "port": 7_001 }] },
        });
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn a_server_is_ready_only_when_the_cluster_says_so() {
        let mut servers = Servers::default();
        for (state, expected) in [
            ("Scheduled", Standing::Starting),
            ("RequestReady", Standing::Starting),
            ("Ready", Standing::Ready),
            ("Allocated", Standing::Busy),
        ] {
            assert!(
                servers
                    .apply(Change::Seen(object("a", state, "n", None)))
                    .is_empty()
            );
            let (_, found) = servers.iter().next().expect("one");
            assert_eq!((found.standing, found.port), (expected, 7_001));
        }
        let gone = servers.apply(Change::Seen(object("a", "Unhealthy", "n", None)));
        assert_eq!(gone, [server_id("a")]);
        assert_eq!(servers.counts(), Counts::default());
        // The deletion that follows is no news.
        assert!(
            servers
                .apply(Change::Gone(object("a", "Unhealthy", "n", None)))
                .is_empty()
        );
    }

    #[test]
    fn what_a_new_list_does_not_name_is_gone() {
        let mut servers = Servers::default();
        for name in ["a", "b"] {
            servers.apply(Change::Seen(object(name, "Allocated", "n", Some(7))));
        }
        servers.apply(Change::Begin);
        servers.apply(Change::Seen(object("b", "Allocated", "n", Some(7))));
        assert_eq!(servers.apply(Change::Complete), [server_id("a")]);
        assert_eq!(servers.hosts(), [(server_id("b"), MatchId(7))]);
        assert!(servers.apply(Change::Complete).is_empty());
    }

    #[test]
    fn machines_are_full_by_their_matches() {
        let mut servers = Servers::default();
        for (name, state, node) in [
            ("a", "Allocated", "one"),
            ("b", "Allocated", "one"),
            ("c", "Ready", "two"),
            ("d", "Allocated", "two"),
        ] {
            servers.apply(Change::Seen(object(name, state, node, None)));
        }
        assert_eq!(servers.full_hosts(2), ["one"]);
        assert_eq!(servers.full_hosts(1), ["one", "two"]);
        assert!(servers.full_hosts(3).is_empty());
    }

    #[test]
    fn a_server_is_told_to_end_once() {
        let mut servers = Servers::default();
        servers.apply(Change::Seen(object("a", "Allocated", "n", Some(1))));
        let server = server_id("a");
        assert!(servers.release(server));
        servers.apply(Change::Seen(object("a", "Allocated", "n", Some(1))));
        assert!(!servers.release(server));
        servers.keep(server);
        assert!(servers.release(server));
        assert!(!servers.release(server_id("b")));
    }
}
