"""What people read of an audit."""

from dataclasses import replace

from dvfl.audit.pages.audit_pages import Audit, defence_table, markdown, page, plots
from dvfl.audit.pages.summary import knew, lines
from dvfl.audit.recordings.findings import Finding
from dvfl.audit.recordings.measured import Measured


def inversion(known: int, mean: float, way: str = "ridge", control: str = "") -> Measured:
    return Measured("inversion", way, "a host", "encodings", known, "columns", "", "R2", (mean,), control)  # type: ignore[arg-type]


def gradients(mean: float, *, channel: bool) -> Measured:
    of = "labels of each class"
    return Measured("gradient_labels", "cosine", "a guest", "", 1, of, "", "AUC", (mean,), channel=channel)


def version_of(strategy: str) -> str:
    """A version of its own for each strategy, as if they were attacked on two machines."""
    return f"of {strategy}"


def finding(strategy: str, defence: str, accuracy: float, *figures: Measured, **more: object) -> Finding:
    return Finding(
        strategy, defence, "words", (accuracy,), figures, 1.0, {"cpu": "x"}, {"torch": version_of(strategy)}, **more
    )  # type: ignore[arg-type]


def audit() -> Audit:
    control = inversion(50, 0.95, "ridge", "raw features")
    ours = finding(
        "dvfl",
        "none",
        98.8,
        inversion(50, 0.7),
        inversion(50, 0.82, "public rows"),
        control,
        gradients(0.5, channel=False),
    )
    shielded = finding("dvfl", "shield-0.5", 98.2, inversion(50, 0.23), gradients(0.5, channel=False), noise=0.05)
    theirs = finding("splitnn-wait", "none", 98.9, inversion(50, -0.1), gradients(0.99, channel=True))
    found = [ours, shielded, theirs]
    return Audit("mnist, dvfl", "mnist", "dvfl audit RUN", (0,), "", found)


def test_the_strongest_way_counts_and_stands_beside_its_control() -> None:
    line = next(one for one in lines([audit().findings[0], audit().findings[2]]) if "columns" in one.what)
    assert line.answers == ("82% of their variance", "0% of their variance")
    assert line.baseline == "raw columns in place of encodings: 95%"
    assert line.help == "columns of 50 people"


def test_where_there_is_no_channel_the_page_says_so_and_gives_no_figure() -> None:
    line = next(one for one in lines([audit().findings[0], audit().findings[2]]) if "feedback" in one.what)
    assert line.answers[0].startswith("nothing to look at") and line.answers[1].startswith("99 of 100 pairs told apart")
    heads, rows = defence_table(audit())
    column = heads.index("by a guest's gradients")
    assert [row[column] for row in rows] == ["no channel", "no channel", "0.99"]


def test_help_is_that_of_the_federation_that_has_a_channel() -> None:
    """DVFL's figure, which is a guess, is the same whatever help there is."""
    found = [audit().findings[0], audit().findings[2]]
    line = next(one for one in lines(found) if "feedback" in one.what)
    assert line.help == "the label of 1 of each class" and line.baseline == "a guess: 50 of 100 pairs"


def labels(attack: str, way: str, mean: float, *, channel: bool = True, known: int = 10, control: str = "") -> Measured:
    of = "labels of each class"
    return Measured(attack, way, "a guest", "", known, of, "", "balanced accuracy", (mean,), control, channel)  # type: ignore[arg-type]


def test_who_trains_for_it_is_set_beside_who_looks_on() -> None:
    ours = finding("dvfl", "none", 98.0, labels("completion", "inflated first guest", 46.9, channel=False))
    theirs = [labels("completion", way, mean) for way, mean in (("first guest", 50.0), ("inflated first guest", 52.0))]
    line = next(one for one in lines([ours, finding("splitnn-wait", "none", 98.0, *theirs)]) if "trains" in one.who)
    assert line.answers == ("no more than by looking on: 46.9\N{NO-BREAK SPACE}%", "52.0\N{NO-BREAK SPACE}% right")
    assert line.baseline == "looking on: 50.0\N{NO-BREAK SPACE}%"


def test_a_guess_is_the_baseline_where_somebody_has_nothing_to_look_at() -> None:
    ours = finding("dvfl", "none", 98.0, labels("direct_labels", "", 10.0, channel=False))
    theirs = finding("splitnn-wait", "none", 98.0, labels("direct_labels", "", 99.0))
    line = next(one for one in lines([ours, theirs]) if "feedback" in one.what)
    assert line.baseline == "a guess: 10.0\N{NO-BREAK SPACE}%"


def test_predictions_that_turn_without_changed_rows_are_a_backdoors_baseline() -> None:
    figures = [
        Measured("backdoor", "trigger", "a guest", "", known, "classes", "", "share of rows", (mean,), control)  # type: ignore[arg-type]
        for known, mean, control in ((600, 97.0, ""), (0, 3.0, "nothing seen"))
    ]
    line = next(one for one in lines([finding("dvfl", "none", 98.0, *figures)]) if "predictions" in one.what)
    assert line.baseline == "without it: 3.0\N{NO-BREAK SPACE}%" and line.help == "600 of its own rows, changed"


def test_pages_say_never_that_anything_is_private() -> None:
    for text in (markdown(audit()), page(audit())):
        assert "private" not in text.lower()
        assert "shield-0.5" in text and "No backward channel" in text


def test_leak_is_drawn_against_accuracy_where_there_is_a_channel() -> None:
    drawn = plots(audit())
    assert set(drawn) == {"inversion-50"}  # one federation alone has gradients
    assert "shield-0.5" in drawn["inversion-50"]


def test_figures_survive_as_plain_data() -> None:
    for one in audit().findings:
        assert Finding.from_dict(one.as_dict()) == one


def test_colluders_can_do_at_least_what_the_host_can_alone() -> None:
    helped = Measured("collusion", "ridge, together", "a host and a guest", "", 50, "columns", "", "R2", (0.6,))
    ours = finding("dvfl", "none", 98.0, inversion(50, 0.8), helped)
    line = next(one for one in lines([ours]) if one.who == "a host and a guest together")
    assert line.answers == ("80% of their variance",)


def test_versions_are_those_that_figures_were_made_with_and_not_those_of_the_page() -> None:
    text = markdown(audit())
    assert "- versions: torch of dvfl; torch of splitnn-wait" in text


def test_what_an_attacker_knew_reads_as_people_say_it() -> None:
    one, ten = gradients(0.9, channel=True), replace(gradients(0.9, channel=True), known=10)
    assert [knew(one), knew(ten)] == ["1 label of each class", "10 labels of each class"]
    assert [knew(inversion(1000, 0.8)), knew(inversion(0, 0.0))] == ["columns of 1,000", "nothing"]
