#!/usr/bin/env python3
"""Keeps the number of followers of every user in an SQLite file, from the topic of a fleet (docs/events.md).

    pip install confluent-kafka
    followers.py --brokers 127.0.0.1:9092 --database followers.db
    followers.py --database followers.db --show 2

Kill and restart it at any time: counts and positions change in one transaction, so that each event counts once.
Two processes on one file are harmless for the same reason.
"""

import argparse
import json
import sqlite3
import sys
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

VERSION = 1
BATCH_MESSAGES = 1_000
TIMEOUT_SECONDS = 30

# Counts are kept for each shard of the followers, so that one shard can be cleared alone.
SCHEMA = """
    CREATE TABLE IF NOT EXISTS followers (
        followee TEXT, shard INTEGER, count INTEGER NOT NULL, PRIMARY KEY (followee, shard)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS positions (
        shard INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, offset INTEGER NOT NULL
    );
"""
ADD = "INSERT INTO followers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
CLEAR = "DELETE FROM followers WHERE shard = ?"
SAVE = "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)"
SHOW = "SELECT followee, sum(count) FROM followers GROUP BY followee HAVING sum(count) > 0 ORDER BY followee"
SHOW_ONE = "SELECT ifnull(sum(count), 0) FROM followers WHERE followee = ?"


class Position(NamedTuple):
    """How far the view has come in a shard: the last event that it contains, and the offset of a known event."""

    epoch: int = 0
    sequence: int = 0
    offset: int = 0


class View:
    def __init__(self, file):
        self.database = sqlite3.connect(file, timeout=TIMEOUT_SECONDS, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.executescript(SCHEMA)

    def positions(self):
        rows = self.database.execute("SELECT shard, epoch, sequence, offset FROM positions")
        return {shard: Position(*position) for shard, *position in rows}

    def take(self, messages):
        """Takes each event that is the next of its shard. Returns how many, and which shards still miss their next."""
        taken, missing = 0, {}
        with self.database:
            self.database.execute("BEGIN IMMEDIATE")
            positions = self.positions()
            for message in messages:
                shard, event = message.partition(), json.loads(message.value())
                if event["version"] > VERSION:
                    sys.exit(f"an event has version {event['version']}: update this program")
                epoch, sequence, offset = positions.get(shard, Position())
                if event["epoch"] < epoch:
                    continue
                if event["epoch"] > epoch:  # The fleet was restored: the shard starts again.
                    self.database.execute(CLEAR, (shard,))
                    epoch, sequence = event["epoch"], 0
                if event["sequence"] > sequence + 1:  # Some are missing, and come again. The offset stays before them.
                    positions[shard] = missing[shard] = Position(epoch, sequence, offset)
                    continue
                if event["sequence"] == sequence + 1:
                    self.apply(shard, event)
                    missing.pop(shard, None)
                    taken, sequence = taken + 1, sequence + 1
                positions[shard] = Position(epoch, sequence, message.offset())
            shards = {message.partition() for message in messages} & positions.keys()
            self.database.executemany(SAVE, [(shard, *positions[shard]) for shard in shards])
        return taken, missing

    def apply(self, shard, event):
        if event["type"] in ("follow", "unfollow"):
            change = (event["since"] is not None) - (event["previous"] is not None)
            self.database.execute(ADD, (event["followee"], shard, change))
        elif event["type"] == "imported":
            print(f"shard {shard}: a change was lost: build the view again from an export", file=sys.stderr)


def start(consumer, topic, positions):
    """Assigns every partition from its position. Returns the ends of those that have messages."""
    partitions = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
    if not partitions:
        sys.exit(f"there is no topic {topic}")
    assignment, ends = [], {}
    for shard in partitions:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, shard), TIMEOUT_SECONDS)
        # The offset is a hint: the topic may have been created anew since.
        offset = positions.get(shard, Position()).offset
        assignment.append(TopicPartition(topic, shard, offset if low <= offset < high else low))
        if low < high:
            ends[shard] = high
    consumer.assign(assignment)
    return ends


def read(consumer):
    for message in consumer.consume(BATCH_MESSAGES, timeout=1):
        if not message.error():
            yield message
        elif message.error().fatal():
            sys.exit(f"Kafka: {message.error()}")
        else:
            print(f"Kafka: {message.error()}", file=sys.stderr)


def follow(consumer, topic, view, once):
    ends, searched, status = start(consumer, topic, view.positions()), {}, 0
    while ends or not once:
        messages = list(read(consumer))
        taken, missing = view.take(messages)
        if taken:
            print(f"{taken} events", flush=True)
        # In a topic that was created anew, the missing event may be earlier: search it once from the beginning.
        again = {shard for shard in missing if searched.get(shard) != missing[shard][:2]}
        for shard in again:
            searched[shard] = missing[shard][:2]
            consumer.seek(TopicPartition(topic, shard, OFFSET_BEGINNING))
        for message in messages:
            shard, end = message.partition(), message.offset() + 1
            if shard in ends and shard not in again and end >= ends[shard]:
                del ends[shard]
                if shard in missing:
                    print(f"shard {shard}: event {missing[shard].sequence + 1} is not in the topic", file=sys.stderr)
                    status = 1
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="kinfolk.changes")
    parser.add_argument("--database", required=True, metavar="FILE")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of librdkafka")
    parser.add_argument("--once", action="store_true", help="end where the topic ends now")
    parser.add_argument("--show", nargs="*", metavar="USER", help="print the counts of these users, or all counts")
    options = parser.parse_args()
    view = View(options.database)
    if options.show is not None:
        rows = [(user, *view.database.execute(SHOW_ONE, (user,)).fetchone()) for user in options.show]
        for user, count in rows or view.database.execute(SHOW):
            print(user, count)
        return 0
    # Positions are in the view: nothing is committed to the group.
    settings = {"group.id": "kinfolk-followers", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    settings |= {"bootstrap.servers": options.brokers, **dict(setting.split("=", 1) for setting in options.config)}
    return follow(Consumer(settings), options.topic, view, options.once)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        pass
