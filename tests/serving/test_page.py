"""The page in a real Chromium: what people see, and those who cannot see or have no mouse."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clinic import Clinic, running

from dvfl.serving.guarding import Rules
from dvfl.serving.tokens import TokenFile, new_token

playwright = pytest.importorskip("playwright.sync_api", reason="the extra dvfl[dev] is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=as_root)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any, server: str) -> Iterator[Open]:
    """Opens the page, with what the console and the network said noted on it."""
    contexts = []

    def opened(address: str = server, **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options}))
        page = contexts[-1].new_page()
        page.complaints, page.asked = [], []
        page.on(
            "console", lambda said: page.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Open) -> Any:
    """The page on a desk, once it shows the federation."""
    page = open_page()
    page.get_by_role("heading", name="clinics").wait_for()
    return page


def ask(page: Any, one: str) -> Any:
    """Predicts an id by the form; the answer's place."""
    page.get_by_label("Id", exact=True).fill(one)
    page.get_by_role("button", name="Predict").click()
    return page.locator("#answer")


def sideways(page: Any) -> int:
    """How many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_it_shows_everybody_and_complains_of_nothing(page: Any, server: str, clinic: Clinic) -> None:
    names = (*clinic.guests, *clinic.hosts, "owner")
    for name in names:
        page.locator(f"[data-party='{name}']").wait_for()
        assert page.get_by_role("rowheader", name=name, exact=True).is_visible()
    assert page.locator("path.link").count() == 4 * 2 + 2 + 3  # guests to hosts, hosts to the owner, and the legend's
    assert page.locator("#overall").inner_text() == "All parties up"
    assert page.locator("#fact-accuracy").inner_text() == "97.40 %"
    assert page.get_by_role("img", name="4 guests push to 2 hosts").is_visible()
    assert page.complaints == []
    assert all(url.startswith(server) for url in page.asked)


def test_a_party_that_goes_down_is_seen_and_heard_within_two_seconds(page: Any, clinic: Clinic) -> None:
    assert page.locator("#announcements").inner_text() == ""
    clinic.down = {"imaging"}
    page.locator("[data-party='imaging'].down").wait_for(timeout=2000)
    page.get_by_text("imaging is down", exact=True).wait_for(timeout=500)
    assert page.locator("#announcements").inner_text() == "imaging is down."
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="imaging"))
    assert "down, was done" in row.inner_text()
    assert page.locator(".picture figure #picture path.link.down").count() == 2
    assert page.locator("#timeline rect.fault").count() == 1
    assert page.title() == "(1 down) clinics"
    clinic.down = set()
    page.get_by_text("All parties up", exact=True).wait_for(timeout=2000)
    assert page.locator("#announcements").inner_text() == "imaging is up again."
    page.get_by_text("As a list (1)").click()
    assert "imaging was down from" in page.locator("#faults").inner_text()


def test_losses_move_in_the_charts(page: Any, clinic: Clinic) -> None:
    chart = page.locator(".chart", has_text="Loss of guests")
    for epoch in range(20, 24):
        clinic.epoch = epoch
        chart.get_by_text(f"registry {float(f'{0.9**epoch:.3g}'):g}").wait_for(timeout=2000)
    line = chart.locator("path.c0").first.get_attribute("d")
    assert line.count("L") >= 3


def test_the_form_answers_with_whom_it_rests_on(page: Any, clinic: Clinic) -> None:
    clinic.down, clinic.suspected = {"laboratory", "south"}, {"pharmacy"}
    answer = ask(page, "4711")
    answer.locator(".class").wait_for()
    text = answer.inner_text()
    assert "healthy" in text and "confidence 65.8 %" in text
    assert "Degraded" in text and "2 of 4 guests fresh, 1 of 2 hosts" in text
    for part in ("registry: fresh", "laboratory: cached, 95 s old", "pharmacy: left out, looked corrupt"):
        assert part in text
    assert "north: counted" in text and "south: missing" in text


@pytest.mark.parametrize("one", ["nobody", "<img src=x onerror=alert(1)>"])
def test_an_id_that_nobody_knows_is_said_as_it_is(page: Any, one: str) -> None:
    answer = ask(page, one)
    answer.get_by_role("alert").wait_for()
    assert answer.inner_text() == f"The owner knows no id “{one}”."
    assert page.complaints == []


def test_before_training_has_finished_the_form_says_how_far(page: Any, clinic: Clinic) -> None:
    clinic.ready = False
    answer = ask(page, "4711")
    answer.get_by_role("alert").wait_for()
    assert "epoch 3 of 20" in answer.inner_text()
    page.get_by_text("after training", exact=True).first.wait_for(timeout=2000)


@pytest.mark.parametrize("width", [360, 820, 1000, 1360])
def test_no_width_scrolls_sideways(open_page: Open, clinic: Clinic, width: int) -> None:
    clinic.down = {"laboratory"}
    page = open_page(viewport={"width": width, "height": 780}, has_touch=width < 500)
    page.get_by_text("laboratory is down", exact=True).wait_for()
    ask(page, "4711").locator(".class").wait_for()
    assert sideways(page) <= 0
    small = page.locator("button:visible, input:visible, select:visible").evaluate_all(
        "all => all.filter(one => one.getBoundingClientRect().height < 44).length"
    )
    assert small == 0


def test_names_that_nobody_would_choose_fit_too(open_page: Open, clinic: Clinic) -> None:
    clinic.guests = ("a-registry-of-all-hospitals-in-the-northern-provinces", *(f"guest-{n}" for n in range(2, 13)))
    page = open_page(viewport={"width": 360, "height": 780})
    page.locator("[data-party='guest-12']").wait_for()
    assert sideways(page) <= 0


def test_the_keyboard_alone_is_enough(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to prediction"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "id"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.type("4711")
    page.keyboard.press("Enter")
    page.locator("#answer .class").wait_for()


def test_dark_and_light_follow_the_system_and_can_be_read(open_page: Open) -> None:
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme)
        page.get_by_role("heading", name="clinics").wait_for()
        ratios = page.evaluate(CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(243, 246, 247)") == (scheme == "light")


def test_nothing_jumps_while_figures_change(page: Any, clinic: Clinic) -> None:
    page.evaluate(
        "window.moved = 0; new PerformanceObserver(list => list.getEntries().forEach(one => window.moved += one.value))"
        ".observe({type: 'layout-shift', buffered: false})"
    )
    for epoch, down in ((99, {"north"}), (100, {"north", "registry"}), (1000, set())):
        clinic.epoch, clinic.down = epoch, down
        time.sleep(1.1)
    assert page.evaluate("window.moved") < 0.01


def test_a_server_that_leaves_is_missed_and_found_again(open_page: Open, clinic: Clinic) -> None:
    with running(clinic) as address:
        page = open_page(address)
        page.get_by_text("All parties up", exact=True).wait_for()
    page.get_by_text("No connection").first.wait_for(timeout=6000)


def test_a_token_is_asked_for_once(open_page: Open, clinic: Clinic, tmp_path: Path) -> None:
    secret, _ = new_token(tmp_path / "tokens", "ward-3", datetime.now(UTC))
    with running(clinic, Rules(TokenFile(tmp_path / "tokens"))) as address:
        page = open_page(address)
        for given in ("a guess", secret):
            page.get_by_label("Token").wait_for()
            page.get_by_label("Token").fill(given)
            page.get_by_role("button", name="Use it").click()
        page.get_by_role("heading", name="clinics").wait_for()
        ask(page, "4711").locator(".class").wait_for()
        page.reload()
        page.get_by_role("heading", name="clinics").wait_for()
        assert not page.get_by_label("Token").is_visible()


# The contrast of text with what lies behind it, by the formula of WCAG 2.
CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = {};
  const texts = "h1,#run,dt,dd,h2,figcaption,label,input,button,thead th,tbody th,td,summary,footer a";
  for (const chosen of texts.split(",")) {
    const element = document.querySelector(chosen);
    const a = light(parse(getComputedStyle(element).color)), b = light(behind(element));
    found[chosen] = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  }
  return found;
}"""
