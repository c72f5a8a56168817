"""How much memory and time a guest's table takes: preparing it, and reading random batches from it.

    python benchmarks/big_table.py --rows 10000000 --columns 50 --folder DIR

Makes the table in DIR (about 8 GB for the default, removed afterwards), and prints, for Parquet and CSV, seconds to
prepare it and to open it again, milliseconds for a batch of 64 random rows, and the process's peak resident memory.
"""

import argparse
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

PIECE = 1_000_000  # rows made at once: a row group as pyarrow makes them
BATCHES, BATCH = 2_000, 64


def make(table: Path, slots: Path, rows: int, columns: int) -> None:
    """Writes the table piece by piece, and the slots of its ids in another order."""
    draw = np.random.default_rng(0)
    names = [f"c{i}" for i in range(columns)]
    schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in names)])
    writer = (pq.ParquetWriter if table.suffix == ".parquet" else pacsv.CSVWriter)(table, schema)
    with writer:
        for start in range(0, rows, PIECE):
            count = min(PIECE, rows - start)
            ids = ids_of(np.arange(start, start + count))
            values = draw.normal(size=(columns, count)).astype(np.float32)
            writer.write_table(pa.table([ids, *values], schema=schema))
    order = draw.permutation(rows)
    with pq.ParquetWriter(slots, pa.schema([("id", pa.string()), ("slot", pa.int32())])) as writer:
        for part in np.array_split(order, -(-rows // PIECE)):
            writer.write_table(pa.table({"id": ids_of(part), "slot": part.astype(np.int32)}))


def ids_of(numbers: np.ndarray) -> pa.Array:
    """Text of 14 characters that says nothing."""
    return pa.array([f"P{number * 7919 % 10**13:013}" for number in numbers.tolist()])


def measure(table: Path, slots: Path, prepared: Path) -> dict[str, float]:
    """In a process of its own, so that its peak is of this alone."""
    import torch  # noqa: F401  what a guest's process has in memory besides

    from dvfl.federation.table import open_table

    options = {"id_column": "id", "slots": slots, "prepared": prepared, "values": "standardise", "schema": None}
    before, start = peak(), time.perf_counter()
    open_table(table, **options)
    prepare, start = time.perf_counter() - start, time.perf_counter()
    after = peak()
    made = open_table(table, **options)
    again = time.perf_counter() - start
    batches = np.random.default_rng(1).integers(made.rows, size=(BATCHES, BATCH))
    start = time.perf_counter()
    for rows in batches:
        made.take(rows)
    batch = (time.perf_counter() - start) / BATCHES * 1e3
    return {"before": before, "prepare": prepare, "after": after, "again": again, "batch": batch, "end": peak()}


def peak() -> float:
    """Peak resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where there is room; the system's temporary folder otherwise")
    arguments = parser.parse_args()
    print(
        "| file | MB | prepare s | open again s | batch ms | RSS before MiB | peak after preparing | peak at the end |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for suffix in (".parquet", ".csv"):
        with (
            tempfile.TemporaryDirectory(dir=arguments.folder) as name,
            ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone,
        ):
            folder = Path(name)
            table, slots = folder / f"table{suffix}", folder / "slots.parquet"
            alone.submit(make, table, slots, arguments.rows, arguments.columns).result()
            found = alone.submit(measure, table, slots, folder / "prepared").result()
            times = f"{found['prepare']:.1f} | {found['again']:.2f} | {found['batch']:.3f}"
            memory = f"{found['before']:,.0f} | {found['after']:,.0f} | {found['end']:,.0f}"
            print(f"| {suffix} | {table.stat().st_size / 1e6:,.0f} | {times} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
