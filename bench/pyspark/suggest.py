"""People you may know for everyone, as a PySpark job: what `suggest` of kinfolk-bench stands beside.

The definition is Kinfolk's: the candidates of a user are all whom its followees follow, never the user itself nor
anyone it follows; ranked by how many followees lead to them, then by the sum of 1 / ln(edges) over these in steps of
2^-32, then by id; the best 100 are kept. What Kinfolk keeps on top, the share of neighbours and through whom, is
left out, which favours this job.

Prints one line of JSON. The clock starts with this process; `session_s` is when Spark was ready, `read_s` when the
edges were in memory, `total_s` when the results were on disk.
"""

import argparse
import json
import time

STARTED = time.monotonic()

from pyspark.sql import SparkSession, Window, functions as F  # noqa: E402

KEPT = 100
STEPS = 2.0**32


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edges", help="follower and followee, separated by a comma, tab or space")
    parser.add_argument("output", help="a folder for the Parquet files, which is replaced")
    parser.add_argument("--sample", default="", help="users whose results are printed, separated by commas")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--scratch", default="/tmp", help="where Spark spills to")
    return parser.parse_args()


def session(given):
    return (
        SparkSession.builder.master(f"local[{given.cores}]")
        .appName("suggest")
        .config("spark.driver.memory", given.memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", given.scratch)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", given.partitions)
        # The number of partitions is chosen for the two-step paths, of which there are far more than edges.
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )


def of_jvm(spark, file):
    """What the kernel tells about the JVM in one of its files."""
    with open(f"/proc/{spark.sparkContext._gateway.proc.pid}/{file}") as told:
        return told.read()


def cpu_s(spark):
    """The processor time that the JVM has used. The kernel counts in ticks of 10 ms."""
    fields = of_jvm(spark, "stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def memory_bytes_max(spark):
    line = next(line for line in of_jvm(spark, "status").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def read(spark, file, partitions):
    """The edges, each once, by follower: everything about one user is in one partition from here on."""
    fields = F.split(F.col("value"), "[,\t ]")
    edges = (
        spark.read.text(file)
        .select(fields[0].try_cast("int").alias("user"), fields[1].try_cast("int").alias("followee"))
        .where("user is not null and followee is not null and user <> followee")
        .dropDuplicates()
        .repartition(partitions, "user")
        .cache()
    )
    return edges, edges.count()


def weights(edges):
    """What each user in between adds to the score of whom it leads to."""
    ends = edges.select(F.explode(F.array("user", "followee")).alias("middle"))
    inverse = F.round(F.lit(STEPS) / F.log(F.greatest(F.col("edges"), F.lit(2)).cast("double")))
    return ends.groupBy("middle").agg(F.count("*").alias("edges")).select("middle", inverse.cast("long").alias("weight"))


def suggestions(edges):
    """Both joins are with tables that fit into memory, so the paths are counted where they arise: no shuffle."""
    onwards = edges.select(F.col("user").alias("middle"), F.col("followee").alias("candidate"))
    onwards = onwards.join(F.broadcast(weights(edges)), "middle")
    paths = edges.withColumnRenamed("followee", "middle").join(F.broadcast(onwards), "middle")
    counted = paths.groupBy("user", "candidate").agg(
        F.count("*").cast("int").alias("mutual_count"), F.sum("weight").alias("score")
    )
    followed = edges.withColumnRenamed("followee", "candidate")
    unknown = counted.where("user <> candidate").join(F.broadcast(followed), ["user", "candidate"], "left_anti")
    best = Window.partitionBy("user").orderBy(F.desc("mutual_count"), F.desc("score"), "candidate")
    return unknown.withColumn("rank", F.row_number().over(best)).where(F.col("rank") <= KEPT)


def sampled(spark, output, users):
    rows = spark.read.parquet(output).where(F.col("user").isin(users)).orderBy("user", "rank").collect()
    found = {str(user): [] for user in users}
    for row in rows:
        found[str(row["user"])].append([row["candidate"], row["mutual_count"], row["score"]])
    return found


def main():
    given = arguments()
    spark = session(given)
    spark.sparkContext.setLogLevel("ERROR")
    session_s = time.monotonic() - STARTED
    edges, count = read(spark, given.edges, given.partitions)
    read_s = time.monotonic() - STARTED
    cpu_before_s = cpu_s(spark)
    suggestions(edges).write.mode("overwrite").parquet(given.output)
    total_s = time.monotonic() - STARTED
    suggest_cpu_s = cpu_s(spark) - cpu_before_s
    memory_max = memory_bytes_max(spark)
    stored = spark.read.parquet(given.output)
    sums = stored.agg(F.count("*"), F.sum("candidate"), F.sum("mutual_count")).first()
    users = [int(user) for user in given.sample.split(",") if user]
    print(
        json.dumps(
            {
                "edges": count,
                "rows": sums[0],
                "id_sum": sums[1],
                "mutual_count_sum": sums[2],
                "session_s": session_s,
                "read_s": read_s,
                "total_s": total_s,
                "suggest_cpu_s": suggest_cpu_s,
                "memory_bytes_max": memory_max,
                "sample": sampled(spark, given.output, users),
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
