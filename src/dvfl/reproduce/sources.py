"""Which data a training of an experiment gets: the set, its split, what is labelled and what is aligned."""

from dataclasses import replace
from pathlib import Path

from dvfl.data import VerticalData, load
from dvfl.data.split.vertical import fewer_rows, limited_intersection, misaligned
from dvfl.reproduce.outcome.experiment import Source
from dvfl.runs.run_folder import fingerprint


class Sources:
    """Data sets, read once."""

    def __init__(self, data_dir: Path | None, rows: int | None) -> None:
        self._data_dir, self._rows = data_dir, rows
        self._read: dict[str, VerticalData] = {}
        self._examples: dict[Source, VerticalData] = {}

    def data(self, source: Source, seed: int) -> VerticalData:
        """What the training of a seed gets; the same object for all seeds where none is drawn."""
        whole = self._whole(source.dataset)
        if source.split is not None:
            drawn = load(source.dataset, data_dir=self._data_dir, split=source.split, split_seed=seed)
            whole = self._fewer(drawn)
        if source.labelled is not None:
            whole = limited_intersection(whole, source.labelled, seed)
        return misaligned(whole, seed) if source.misaligned else whole

    def example(self, source: Source) -> VerticalData:
        """Data of the shape that every seed of the source gets."""
        aligned = replace(source, misaligned=False)  # which would be a copy of the same shape
        if aligned not in self._examples:
            self._examples[aligned] = self.data(aligned, 0)
        return self._examples[aligned]

    def fingerprint(self, dataset: str) -> str:
        """SHA-256 of a data set as it is read here."""
        return fingerprint(replace(self._whole(dataset), labelled=None))

    def _whole(self, dataset: str) -> VerticalData:
        if dataset not in self._read:
            self._read[dataset] = self._fewer(load(dataset, data_dir=self._data_dir))
        return self._read[dataset]

    def _fewer(self, data: VerticalData) -> VerticalData:
        small = data.split is None or data.split.rule != "official"  # sets that an experiment has beside a larger one
        return data if small and (self._rows or 0) >= data.rows else fewer_rows(data, self._rows)
