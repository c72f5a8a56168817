"""How much memory and time a guest with many rows takes: preparing its table, an epoch of training, and its sweep.

    python benchmarks/big_table.py --rows 10000000 --columns 50 --folder DIR

Makes the table in DIR (about 8 GB for the default, removed afterwards), and prints, for Parquet and CSV, seconds to
prepare it, to open it again, to train one epoch, to encode every row once more, and the process's peak memory.
"""

import argparse
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dvfl.federation.guest.guest import GuestParty
from dvfl.federation.guest.guest_training import Rows
from dvfl.federation.party.storage import DiskStorage
from dvfl.federation.protocol.plan import Plan, PlannedGuest, sign
from dvfl.federation.protocol.wire import Welcome, encode
from dvfl.federation.tables.table import open_table
from dvfl.parties.numerics.learner import Adam

PIECE = 1_000_000  # rows made at once: a row group as pyarrow makes them
BATCH = 64


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


def measure(table: Path, slots: Path, folder: Path) -> dict[str, float]:
    """In a process of its own, so that its peak is of this alone."""
    options: dict[str, Any] = {
        "id_column": "id",
        "slots": slots,
        "prepared": folder / "table",
        "values": "standardise",
        "schema": None,
    }
    before, start = peak(), time.perf_counter()
    open_table(table, **options)
    prepare, start = time.perf_counter() - start, time.perf_counter()
    after = peak()
    made = open_table(table, **options)
    again = time.perf_counter() - start
    train, sweep = trained(made, folder)
    found = {"before": before, "prepare": prepare, "after": after, "again": again}
    return {**found, "train": train, "sweep": sweep, "end": peak()}


def trained(table: Rows, folder: Path) -> tuple[float, float]:
    """Seconds for one epoch as a guest's process trains it, each message made as it is pushed, and for the sweep."""
    key = Ed25519PrivateKey.generate()
    guest = GuestParty(
        "guest-1",
        table,
        None,
        DiskStorage(folder),
        key.public_key(),
        federation="f" * 64,
        now_ms=1,
        log=print,
        lineage=1,
    )
    plan = sign(planned(table), "train", 1, key)
    guest.welcomed("host-1", Welcome("host-1", 1, 1, 0, 0, False, False, False, False, plan.text()))
    start = time.perf_counter()
    while not guest.trained:
        message = guest.train()
        if message is not None:
            encode(message)
    guest.save()
    train, start = time.perf_counter() - start, time.perf_counter()
    for message in guest.sweep():
        encode(message)
    return train, time.perf_counter() - start


def planned(table: Rows) -> Plan:
    """One epoch of one guest, with masked values as the preset `tuned` has them."""
    return Plan(
        run="0" * 32,
        federation="f" * 64,
        seed=0,
        guests=(PlannedGuest("guest-1", table.width, False),),
        hosts=("host-1",),
        rule="table",
        w_g=None,
        w_h=None,
        guest_hidden=None,
        batch=BATCH,
        guest_epochs=1,
        period=1,
        host_epochs=1,
        guest_rule=Adam(1e-3),
        host_rule=Adam(1e-3),
        guest_schedule="constant",
        host_schedule="constant",
        guest_objective="reconstruction",
        host_model="autoencoder",
        host_objective="reconstruction",
        temperature=0.5,
        adversary=0.0,
        guest_noise=0.2,
        guest_dropout=0.0,
        partial=0,
        rows=table.rows,
        slots=table.rows,
        encode_slots=0,
        quorum_hosts=1,
        quorum_guests=1,
        stall_s=60.0,
        sweep_deadline_s=60.0,
        phase1_deadline_s=600.0,
    )


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
        "| file | MB | prepare s | open again s | epoch s | sweep s | MiB before | peak, prepared | peak, at the end |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for suffix in (".parquet", ".csv"):
        with (
            tempfile.TemporaryDirectory(dir=arguments.folder) as name,
            ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone,
        ):
            folder = Path(name)
            table, slots = folder / f"table{suffix}", folder / "slots.parquet"
            alone.submit(make, table, slots, arguments.rows, arguments.columns).result()
            found = alone.submit(measure, table, slots, folder / "state").result()
            times = " | ".join(f"{found[name]:.1f}" for name in ("prepare", "again", "train", "sweep"))
            memory = f"{found['before']:,.0f} | {found['after']:,.0f} | {found['end']:,.0f}"
            print(f"| {suffix} | {table.stat().st_size / 1e6:,.0f} | {times} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
