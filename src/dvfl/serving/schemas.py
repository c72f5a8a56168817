"""What goes over HTTP, as the OpenAPI document tells it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictStr

from dvfl.federation.protocol.predictions import Prediction

IDS, ID_CHARACTERS = 10_000, 256
SHORTEST_S, DEADLINE_S, LONGEST_S = 0.05, 2.0, 60.0

Id = Annotated[StrictStr, Field(min_length=1, max_length=ID_CHARACTERS)]


class PredictRequest(BaseModel):
    """Ids to predict, and how long an answer may take."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"ids": ["17", "42"], "deadline_s": 2.0}})

    ids: Annotated[list[Id], Field(min_length=1, max_length=IDS)]
    deadline_s: Annotated[
        StrictFloat, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False, description="Seconds.")
    ] = DEADLINE_S


class GuestAnswer(BaseModel):
    """A guest's part in one prediction."""

    state: Literal["fresh", "cached", "absent"]
    age_s: float | None
    suspected: bool = Field(description="Left out because what it sent looked corrupt.")


class Answer(BaseModel):
    """What is known of one id."""

    id: str
    known: bool = Field(description="Whether the owner knows this id at all.")
    answered: bool = Field(description="Whether there was anything to rest on.")
    label: str | None = Field(alias="class", description="The likeliest class; null of a regression.")
    value: float | None = Field(description="Of a regression.")
    probabilities: dict[str, float]
    confidence: float | None
    degraded: bool = Field(description="Anything but all guests fresh at every host.")
    guests: dict[str, GuestAnswer]
    hosts: dict[str, bool] = Field(description="Whether each answered in time.")


class Predictions(BaseModel):
    """One answer for each id, in the order of the request."""

    predictions: list[Answer]
    unknown: list[str] = Field(description="Ids that the owner does not know.")
    degraded: int = Field(description="How many of the known ones rest on less than everybody.")


class Register(BaseModel):
    """What a host holds of a guest."""

    model_config = ConfigDict(extra="allow")
    age_s: float | None = None


class Party(BaseModel):
    """A guest, a host or the owner, as far as the owner knows."""

    model_config = ConfigDict(extra="allow")
    up: bool
    state: str | None = None
    loss: float | None = None
    restarts: int | None = None


class GuestStatus(Party):
    """A guest and its registers, by host."""

    hosts: dict[str, Register] = Field(default_factory=dict)


class Status(BaseModel):
    """The federation as the owner sees it."""

    model_config = ConfigDict(extra="allow")
    federation: str
    run: str | None = None
    phase: str
    ready: bool
    accuracy: float | None = None
    owner: Party
    hosts: dict[str, Party]
    guests: dict[str, GuestStatus]
    time_s: float


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Problem(BaseModel):
    """One line: what was wrong, and what would be right."""

    error: str


def answer(prediction: Prediction) -> dict[str, Any]:
    """A prediction as JSON has it; built by hand, since ten thousand of them come at once."""
    return {
        "id": prediction.id,
        "known": prediction.known,
        "answered": prediction.answered,
        "class": prediction.label,
        "value": prediction.value,
        "probabilities": prediction.probabilities,
        "confidence": prediction.confidence,
        "degraded": prediction.degraded,
        "guests": {
            name: {"state": part.state, "age_s": part.age_s, "suspected": part.suspected}
            for name, part in prediction.guests.items()
        },
        "hosts": prediction.hosts,
    }
