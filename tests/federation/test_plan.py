"""A plan is followed only if it can be, the owner signed it, and it does not take anything back."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from dvfl.errors import UserError
from dvfl.federation.protocol.plan import PHASES, BadPlan, Phase, Plan, PlannedGuest, SignedPlan, newer, read_plan, sign
from dvfl.federation.protocol.wire import Tell, Welcome, decode, encode
from dvfl.parties.networks.sizes import sizes
from dvfl.parties.numerics.learner import Adam, Sgd
from dvfl.parties.objectives.warps import Strip

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
PLAN = Plan(
    run="0123456789abcdef" * 2,
    federation="ab" * 32,
    seed=3,
    guests=(PlannedGuest("guest-1", 14, False), PlannedGuest("guest-2", 9, True)),
    hosts=("host-1", "host-2", "host-3"),
    rule="table",
    w_g=None,
    w_h=12,
    guest_hidden=None,
    guest_objective="reconstruction",
    host_model="autoencoder",
    host_objective="simclr",
    temperature=0.5,
    adversary=0.0,
    batch=64,
    guest_epochs=20,
    period=2,
    host_epochs=40,
    guest_rule=Adam(2e-3, weight_decay=1e-5),
    host_rule=Sgd(1e-2, momentum=0.5),
    guest_schedule="constant",
    host_schedule="cosine",
    guest_noise=0.0,
    guest_dropout=0.1,
    partial=1,
    slots=1000,
    encode_slots=200,
    rows=1000,
    quorum_hosts=2,
    quorum_guests=1,
    stall_s=30.0,
    sweep_deadline_s=600.0,
    phase1_deadline_s=3600.0,
)
NEXT_RUN = replace(PLAN, run="f" * 32)


def signed(phase: Phase = "train", revision: int = 1, plan: Plan = PLAN) -> SignedPlan:
    return sign(plan, phase, revision, KEY)


def tampered(change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(signed().text())
    change(document)
    return json.dumps(document)


# The plan.


def test_what_follows_from_a_plan() -> None:
    assert PLAN.sizes == sizes("table", [14, 9], None, 12)
    assert PLAN.host_steps == 40 * 16  # 1000 rows are 16 batches of 64, the last one completed
    assert PLAN.all_slots == 1200


def test_a_plan_comes_back_from_plain_data() -> None:
    plain = json.loads(json.dumps(PLAN.to_dict()))
    assert plain["guest_rule"]["name"] == "adam"
    assert Plan.from_dict(plain) == PLAN


def test_the_hash_does_not_depend_on_the_order_of_fields() -> None:
    plain = PLAN.to_dict()
    turned = {
        name: dict(reversed(value.items())) if isinstance(value, dict) else value
        for name, value in reversed(plain.items())
    }
    assert list(turned) != list(plain)
    assert Plan.from_dict(turned).hash == PLAN.hash


def test_the_hash_is_that_of_sorted_json_without_spaces() -> None:
    # Other versions must find the same hash; a change of this number is a change of the protocol.
    assert PLAN.hash == "75f2e17e9f1edf51af9b758b8b39c667392da95fbb4040f64f1837b7ee2a1c31"


def test_a_whole_number_of_seconds_makes_the_same_plan() -> None:
    assert replace(PLAN, stall_s=30).hash == PLAN.hash
    assert replace(PLAN, stall_s=31).hash != PLAN.hash


@pytest.mark.parametrize("name", list(PLAN.to_dict()))
def test_every_field_is_in_the_hash_and_is_needed(name: str) -> None:
    others = {
        **{
            "run": "f" * 32,
            "federation": "c" * 64,
            "rule": "mnist",
            "hosts": ("host-1", "host-9"),
            "w_g": 5,
            "guest_hidden": 7,
        },
        **{"guests": PLAN.guests[::-1], "guest_rule": Sgd(1e-3), "host_rule": Adam(1e-3)},
        **{
            "guest_schedule": "cosine",
            "host_schedule": "constant",
            "guest_noise": 0.2,
            "guest_dropout": 0.3,
            "quorum_guests": 2,
        },
        **{"guest_objective": "simclr", "host_objective": "reconstruction", "temperature": 0.7},
        "adversary": 0.5,
        "host_model": "concatenate",
    }
    other = others[name] if name in others else getattr(PLAN, name) - 1
    fitting = {
        "host_model": {"host_objective": "reconstruction", "partial": 0},
        "adversary": {"guest_objective": "simclr", "guest_noise": 0.0},
    }
    plan = replace(PLAN, **fitting.get(name, {}))
    assert replace(plan, **{name: other}).hash != plan.hash
    plain = PLAN.to_dict()
    del plain[name]
    with pytest.raises(UserError, match=f"plan: .*{name}"):
        Plan.from_dict(plain)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("quorum_hosts", 4, "3 hosts, so this quorum cannot be met"),
        ("quorum_guests", 3, "2 guests, so this quorum cannot be met"),
        ("quorum_hosts", 0, "quorum_hosts: 0"),
        ("guests", (), "guests"),
        ("hosts", (), "hosts"),
        ("hosts", ("host-1", "host-1"), "no other party"),
        ("hosts", ("guest-1",), "no other party"),
        ("hosts", ("Host",), "cannot name a party"),
        ("hosts", ["host-1", "host-2"], "hosts"),
        ("guests", (PlannedGuest("guest-1", 0, True),), "columns of 'guest-1': 0"),
        ("guests", (PlannedGuest("guest-1", 3, 1),), "guests"),
        ("guests", (PlannedGuest("guest-1", 3, True),) * 2, "no other party"),
        ("guests", tuple(PlannedGuest(f"g{number}", 1, True) for number in range(1025)), "1 to 1024"),
        ("guests", tuple(PlannedGuest(f"{'g' * 58}{number}", 1, True) for number in range(1000)), "shorter names"),
        ("run", "0" * 31, "32 hexadecimal digits"),
        ("run", "G" * 32, "32 hexadecimal digits"),
        ("federation", "0" * 64 + "\n", "64 hexadecimal digits"),
        ("seed", -1, "seed: -1"),
        ("seed", True, "seed: True"),
        ("rule", "mnits", "unknown sizing rule 'mnits'; did you mean 'mnist'"),
        ("rule", None, "rule: None"),
        ("rule", "a\nrule", r"rule: 'a\\nrule'"),
        ("w_g", 0, "w_g: 0"),
        ("w_h", -2, "w_h: -2"),
        ("w_g", 200_000, "w_g or w_h: 100000"),
        ("batch", 0, "batch: 0"),
        ("batch", 64.0, "batch: 64.0"),
        ("guest_epochs", 0, "guest_epochs: 0"),
        ("period", 0, "period: 0"),
        ("period", 21, "at most guest_epochs"),
        ("host_epochs", -1, "host_epochs: -1"),
        ("guest_rule", Adam(0.0), r"guest_rule\.rate: 0\.0"),
        ("guest_rule", Adam(1e-3, beta2=1.0), r"guest_rule\.beta2: 1\.0"),
        ("host_rule", Sgd(1e-3, weight_decay=-1.0), r"host_rule\.weight_decay: -1\.0"),
        ("host_rule", "adam", "host_rule: 'adam'"),
        ("guest_schedule", "linear", "guest_schedule: 'linear'; constant or cosine is right"),
        ("guest_noise", 1.0, "guest_noise: 1.0"),
        ("host_objective", "clr", "host_objective: 'clr'; reconstruction or simclr is right"),
        ("host_model", "sum", "host_model: 'sum'; autoencoder or concatenate is right"),
        ("host_model", "concatenate", "host_objective: 'simclr'; with hosts that concatenate"),
        ("batch", 1, "batch: 1; with SimCLR"),
        ("temperature", 0.01, "temperature: 0.01"),
        ("adversary", -1.0, "adversary: -1.0"),
        ("adversary", 0.5, "with reconstruction, whose guests learn to be decoded, 0"),
        ("guest_dropout", -0.1, "guest_dropout: -0.1"),
        ("guest_dropout", float("nan"), "guest_dropout: nan"),
        ("slots", 0, "slots: 0"),
        ("slots", 2**31 - 1, "slots and encode_slots"),
        ("encode_slots", -1, "encode_slots: -1"),
        ("stall_s", 0, "stall_s: 0"),
        ("sweep_deadline_s", float("inf"), "sweep_deadline_s: inf"),
        ("phase1_deadline_s", 10**400, "phase1_deadline_s: 1000"),
        ("phase1_deadline_s", True, "phase1_deadline_s: True"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_plan_that_cannot_be_is_refused_by_the_name_of_its_field(name: str, value: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        replace(PLAN, **{name: value})


def test_hidden_values_do_not_go_with_guests_that_reconstruct_none() -> None:
    with pytest.raises(UserError, match=r"guest_noise: 0\.1; with SimCLR"):
        replace(PLAN, guest_objective="simclr", guest_noise=0.1)


def test_the_longest_plan_fits_into_a_welcome() -> None:
    guests = tuple(PlannedGuest(f"guest-{number}", 20, True) for number in range(1024))
    text = signed(plan=replace(PLAN, guests=guests)).text()
    welcome = Welcome("host-1", 1, 1, 1, 1, False, False, False, False, text)
    assert read_plan(decode(encode(welcome), Welcome).plan, KEY.public_key()).plan.guests == guests


# Its signature.


@given(st.sampled_from(PHASES), st.integers(1, 2**63 - 1))
def test_a_signed_plan_comes_back_as_it_was_signed(phase: Phase, revision: int) -> None:
    document = signed(phase, revision)
    assert read_plan(document.text(), KEY.public_key()) == document
    assert decode(encode(Tell(document.text())), Tell).plan == document.text()


def test_another_key_does_not_make_a_plan() -> None:
    with pytest.raises(BadPlan, match="not signed by the owner"):
        read_plan(sign(PLAN, "train", 1, OTHER_KEY).text(), KEY.public_key())


@pytest.mark.parametrize("byte", [0, 31, 32, 63])
def test_a_forged_signature_is_refused(byte: int) -> None:
    document = signed()
    forged = bytearray(document.signature)
    forged[byte] ^= 1
    with pytest.raises(BadPlan, match="not signed by the owner"):
        read_plan(replace(document, signature=bytes(forged)).text(), KEY.public_key())


def test_a_signature_of_something_else_is_refused() -> None:
    document = signed()
    for text in (document.text(), document.plan.hash):
        wrong = replace(document, signature=KEY.sign(text.encode()))
        with pytest.raises(BadPlan, match="not signed by the owner"):
            read_plan(wrong.text(), KEY.public_key())


@pytest.mark.parametrize("change", [{"phase": "done"}, {"revision": 2}, {"hash": NEXT_RUN.hash}])
def test_phase_revision_and_hash_are_signed(change: dict[str, Any]) -> None:
    with pytest.raises(BadPlan, match="not signed by the owner"):
        read_plan(tampered(lambda document: document.update(change)), KEY.public_key())


@pytest.mark.parametrize("name", list(PLAN.to_dict()))
def test_a_changed_field_is_refused(name: str) -> None:
    for value in (None, 1, 7.5, "x", [], {}):
        if value == PLAN.to_dict()[name]:
            continue
        with pytest.raises(BadPlan, match="signed"):
            read_plan(tampered(lambda document, value=value: document["plan"].update({name: value})), KEY.public_key())


def test_a_plan_with_its_own_hash_is_still_not_signed() -> None:
    forged = replace(PLAN, seed=4)
    change = {"plan": forged.to_dict(), "hash": forged.hash}
    with pytest.raises(BadPlan, match="not signed by the owner"):
        read_plan(tampered(lambda document: document.update(change)), KEY.public_key())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"more": 1}, "exactly the fields"),
        ({"plan": []}, "plan is not an object"),
        ({"hash": "AB" * 32}, "hash is not"),
        ({"phase": "trian"}, "unknown phase"),
        ({"phase": ["train"]}, "unknown phase"),
        ({"revision": 0}, "revision is not"),
        ({"revision": True}, "revision is not"),
        ({"revision": 2**63}, "revision is not"),
        ({"signature": "ab" * 63}, "signature is not"),
        ({"signature": " " * 128}, "signature is not"),
        ({"signature": 5}, "signature is not"),
    ],
    ids=repr,
)
def test_a_document_of_another_form_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadPlan, match=said):
        read_plan(tampered(lambda document: document.update(change)), KEY.public_key())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{" * 20_000,
        '{"a":' * 9_000,
        "x" * 49_153,
        '{"plan":{},"plan":{}}',
        signed().text().replace('"seed":3', '"seed":3,"seed":3'),
        signed().text().replace('"seed":3', '"seed":NaN'),
        signed().text().replace('"seed":3', '"seed":1e999'),
        signed().text().replace('"seed":3', '"seed":' + "9" * 5000),
        signed().text().replace('"seed":3', '"seed":' + "[" * 900 + "]" * 900),
        signed().text().replace('"seed":3', '"seed":"\\ud800"'),
        "\ud800",
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_text_that_is_no_signed_plan_is_refused(text: str) -> None:
    with pytest.raises(BadPlan):
        read_plan(text, KEY.public_key())


def test_a_signed_plan_that_this_version_cannot_follow_is_refused_in_one_line() -> None:
    impossible = replace(PLAN)
    object.__setattr__(impossible, "rule", "known_elsewhere" * 50)
    with pytest.raises(BadPlan, match="cannot be followed: unknown sizing rule") as caught:
        read_plan(signed(plan=impossible).text(), KEY.public_key())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 256  # fits into a Refused


@given(st.text(max_size=200), st.integers(0, 1500), st.integers(0, 60))
@settings(max_examples=300)
def test_a_plan_with_any_text_put_in_its_place_is_refused(text: str, start: int, length: int) -> None:
    document = signed().text()
    fuzzed = document[:start] + text + document[start + length :]
    try:
        read = read_plan(fuzzed, KEY.public_key())
    except BadPlan as error:
        assert len(str(error)) <= 256
    else:
        assert read == signed()  # nothing was changed, or only blanks were added


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(list(PLAN.to_dict())), JSON)
@settings(max_examples=300)
def test_any_value_in_a_field_makes_a_plan_or_a_user_error(name: str, value: Any) -> None:
    try:
        plan = Plan.from_dict({**PLAN.to_dict(), name: value})
    except UserError as error:
        assert str(error).isprintable()  # in one line, whatever was given
    else:
        assert Plan.from_dict(plan.to_dict()) == plan


def test_a_phase_or_revision_that_cannot_be_is_not_signed() -> None:
    for phase, revision in (("train", 0), ("train", 2**63), ("begun", 1)):
        with pytest.raises(ValueError, match="are right"):
            sign(PLAN, phase, revision, KEY)  # type: ignore[arg-type]


# The newer one.


def test_the_first_plan_is_kept() -> None:
    assert newer(None, signed()) == signed()


def test_a_higher_revision_is_kept_in_the_same_or_a_later_phase() -> None:
    for number, phase in enumerate(PHASES):
        for later in PHASES[number:]:
            assert newer(signed(phase, 4), signed(later, 6)) == signed(later, 6)


def test_a_phase_never_goes_back() -> None:
    for number, phase in enumerate(PHASES):
        for earlier in PHASES[:number]:
            with pytest.raises(BadPlan, match=f"back from {phase} to {earlier}"):
                newer(signed(phase, 4), signed(earlier, 5))


@given(st.sampled_from(PHASES), st.sampled_from(PHASES), st.integers(1, 9), st.integers(1, 9))
def test_a_replayed_revision_changes_nothing(known: Phase, replayed: Phase, one: int, other: int) -> None:
    older, newest = sorted((one, other))
    assert newer(signed(known, newest), signed(replayed, older)) == signed(known, newest)


def test_another_plan_under_the_same_run_is_refused() -> None:
    with pytest.raises(BadPlan, match="another plan for the same run"):
        newer(signed(), signed("collect", 2, replace(PLAN, seed=4)))


def test_another_run_is_refused_until_the_known_one_is_retired() -> None:
    for phase in ("train", "collect", "done"):
        with pytest.raises(BadPlan, match="of another run"):
            newer(signed(phase, 4), signed("train", 5, NEXT_RUN))
    assert newer(signed("retired", 4), signed("train", 1, NEXT_RUN)) == signed("train", 1, NEXT_RUN)


def test_a_strip_comes_back_and_must_fit_its_guest() -> None:
    guests = (PlannedGuest("guest-1", 14, True, Strip(2, 7, 3, 9)), PlannedGuest("guest-2", 9, True))
    plan = replace(PLAN, guests=guests)
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    for strip in (Strip(2, 8, 3, 9), Strip(2, 7, 8, 9), Strip(0, 7, 0, 9), (2, 7, 3, 9), [2, 7, 3, 9]):
        with pytest.raises(UserError, match="strip of 'guest-1'"):
            replace(PLAN, guests=(replace(guests[0], strip=strip), guests[1]))  # type: ignore[arg-type]
