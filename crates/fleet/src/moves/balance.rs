//! Which moves would spread the shards evenly over the hosts.

use std::collections::BTreeMap;

use kinfolk_core::Shard;

/// A move that would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    /// Which shard.
    pub shard: Shard,
    /// Where it is.
    pub from: String,
    /// Where it should be.
    pub to: String,
}

/// The fewest moves after which no host has two shards more than another. `hosts` are all hosts, `shards` the host of each shard.
pub fn plan_balance(hosts: &[String], shards: &[(Shard, String)]) -> Vec<PlannedMove> {
    let mut held: BTreeMap<&str, Vec<Shard>> = hosts.iter().map(|host| (host.as_str(), Vec::new())).collect();
    for (shard, host) in shards {
        held.entry(host).or_default().push(*shard);
    }
    let mut moves = Vec::new();
    loop {
        let most = held.iter().rev().max_by_key(|(_, shards)| shards.len());
        let least = held.iter().min_by_key(|(_, shards)| shards.len());
        let (Some((&from, most)), Some((&to, least))) = (most, least) else { return moves };
        if most.len() < least.len() + 2 {
            return moves;
        }
        let Some(shard) = held.get_mut(from).and_then(Vec::pop) else { return moves };
        held.entry(to).or_default().push(shard);
        moves.push(PlannedMove { shard, from: from.to_owned(), to: to.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hosts: &[&str], shards: &[&str]) -> Vec<(u16, String)> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let shards: Vec<(Shard, String)> =
            shards.iter().zip(0..).map(|(&host, shard)| (Shard(shard), host.to_owned())).collect();
        plan_balance(&hosts, &shards).into_iter().map(|planned| (planned.shard.0, planned.to)).collect()
    }

    #[test]
    fn a_new_host_gets_its_share_and_nothing_is_moved_twice() {
        let moves = plan(&["a", "b", "c"], &["a", "b", "a", "b", "a", "b"]);
        assert_eq!(moves, [(4, "c".to_owned()), (5, "c".to_owned())]);
    }

    #[test]
    fn even_hosts_stay_as_they_are() {
        assert_eq!(plan(&["a", "b"], &["a", "b", "a"]), []);
        assert_eq!(plan(&["a"], &["a", "a"]), []);
        assert_eq!(plan(&[], &[]), []);
    }
}
