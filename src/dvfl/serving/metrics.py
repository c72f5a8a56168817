"""What Prometheus is told: requests, answers, and the parties as the owner sees them."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dvfl.federation.protocol.predictions import Prediction
from dvfl.serving.watching import Watcher, parties

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters of one server, and gauges that follow its watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "dvfl_requests", "Requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "dvfl_request_seconds",
            "Seconds until a request is answered.",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._answers = Counter("dvfl_answers", "Answers by what they rest on.", ["kind"], registry=self._registry)
        for kind in ("whole", "degraded", "unanswered", "unknown"):
            self._answers.labels(kind)
        self._registry.register(_Federation(watcher))

    def request(self, path: str, status: int, seconds: float) -> None:
        """One request is over."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def answers(self, predictions: Iterable[Prediction]) -> None:
        """Answers were given."""
        for prediction in predictions:
            self._answers.labels(kind(prediction)).inc()

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)


def kind(prediction: Prediction) -> str:
    """What an answer rests on, in a word."""
    if not prediction.known:
        return "unknown"
    if not prediction.answered:
        return "unanswered"
    return "degraded" if prediction.degraded else "whole"


class _Federation(Collector):
    """The newest status as gauges; nothing where there is none."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def collect(self) -> Iterator[Metric]:
        status = self._watcher.latest
        if status is None:
            return
        up = GaugeMetricFamily("dvfl_party_up", "1 where the owner has heard of it lately.", labels=["party", "role"])
        loss = GaugeMetricFamily("dvfl_party_loss", "The newest loss.", labels=["party", "role"])
        restarts = GaugeMetricFamily("dvfl_party_restarts", "How often it was started again.", labels=["party", "role"])
        for name, role, party in parties(status):
            up.add_metric([name, role], float(party["up"]))
            for family, key in ((loss, "loss"), (restarts, "restarts")):
                if party.get(key) is not None:
                    family.add_metric([name, role], party[key])
        age = GaugeMetricFamily("dvfl_register_age_seconds", "Of a guest's encodings there.", labels=["guest", "host"])
        for guest, party in status["guests"].items():
            for host, register in (party.get("hosts") or {}).items():
                if register.get("age_s") is not None:
                    age.add_metric([guest, host], register["age_s"])
        passed = GaugeMetricFamily("dvfl_owner_bytes", "Of the owner's messages.", labels=["direction"])
        for direction in ("sent", "received"):
            if status["owner"].get(f"bytes_{direction}") is not None:
                passed.add_metric([direction], status["owner"][f"bytes_{direction}"])
        yield from (up, loss, restarts, age, passed)
        yield GaugeMetricFamily("dvfl_ready", "1 where predictions can be asked for.", value=float(status["ready"]))
        if status.get("accuracy") is not None:
            yield GaugeMetricFamily("dvfl_accuracy", "On test rows, in percent.", value=status["accuracy"])
