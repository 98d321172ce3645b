//! Players' names and progress: loaded from the master when a match begins, saved there when there is more.

use std::collections::BTreeMap;

use muse_master_client::AccountId;
use muse_master_client::messages::PlayerProfile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The profiles of the players of a match.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    known: BTreeMap<AccountId, Known>,
}

/// The profile of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Guests have none.
    pub(crate) name: Option<String>,
    pub(crate) progress: Progress,
}

/// The things that a player has unlocked, as the master keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// The farthest checkpoint.
    pub(crate) checkpoint: u8,
    /// Weapons, a bit for each.
    pub(crate) owned: u8,
}

impl Profiles {
    /// Takes over a profile that the master sent. A document that is not this game's progress counts as none.
    pub(crate) fn handle_profile(&mut self, profile: &PlayerProfile) {
        let progress = serde_json::from_value(profile.document.clone()).unwrap_or_default();
        let known = Known {
            name: profile.name.clone(),
            progress,
        };
        self.known.insert(profile.account, known);
    }

    pub(crate) fn known(&self, account: AccountId) -> Option<&Known> {
        self.known.get(&account)
    }

    /// Notes how far a player has got. Returns the document to save, if that is more than before.
    pub(crate) fn advance(
        &mut self,
        account: AccountId,
        checkpoint: u8,
        owned: u8,
    ) -> Option<Value> {
        self.change(account, |progress| Progress {
            checkpoint: progress.checkpoint.max(checkpoint),
            owned: progress.owned | owned,
        })
    }

    /// Notes that a player has escaped. Returns the document to save.
    pub(crate) fn start_over(&mut self, account: AccountId) -> Option<Value> {
        self.change(account, |progress| Progress {
            checkpoint: 0,
            ..progress
        })
    }

    /// Changes nothing while a player's progress is unknown: it would overwrite what the master has.
    fn change(
        &mut self,
        account: AccountId,
        change: impl FnOnce(Progress) -> Progress,
    ) -> Option<Value> {
        let known = self.known.get_mut(&account)?;
        let changed = change(known.progress);
        if changed == known.progress {
            return None;
        }
        known.progress = changed;
        serde_json::to_value(changed).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_only_grows_until_one_escapes() {
        let mut profiles = Profiles::default();
        let account = AccountId(7);
        assert_eq!(profiles.advance(account, 3, 1), None, "nothing is known");
        profiles.handle_profile(&PlayerProfile {
            account,
            name: None,
            document: json!({"checkpoint": 2, "owned": 8, "hat": "red"}),
        });
        assert_eq!(profiles.advance(account, 1, 8), None);
        let more = profiles.advance(account, 4, 7);
        assert_eq!(more, Some(json!({"checkpoint": 4, "owned": 15})));
        let over = profiles.start_over(account);
        assert_eq!(over, Some(json!({"checkpoint": 0, "owned": 15})));
        profiles.handle_profile(&PlayerProfile {
            account,
            name: Some("Ada".to_owned()),
            document: json!("nonsense"),
        });
        let known = profiles.known(account).expect("just told");
        assert_eq!(known.progress, Progress::default());
    }
}
