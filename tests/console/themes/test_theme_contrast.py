"""Every shipped theme can be read: contrast of every word on every ground, and states that every eye tells apart."""

from __future__ import annotations

import itertools

import pytest
from textual.color import Color

from pollconsole import theme_contrast, themes, words
from pollconsole.rows import STATUS_ROLE
from pollconsole.themes import Loaded
from pollcore.facts import Status

SHIPPED = {each.name: each for each in themes.shipped()}
KNOWN = [name for name in themes.SHIPPED if name != "terminal"]
"""Those whose colours are known."""
TEXTS = [role for role in themes.ROLES if role not in ("bar-full", "bar-empty")]
Matrix = tuple[tuple[float, float, float], ...]
BLINDNESS: dict[str, Matrix] = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Machado, Oliveira, Fernandes 2009, whole severity, on linear light."""
APART = 18.0
"""Distance in CIELAB under which two inks are taken for one another at a glance; 2.3 is barely seen side by side."""
STATES = ("calm", "attention", "danger", "good")
"""Well by itself, a person is needed, wrong, ended well: nobody may take one for another."""


def linear(colour: Color) -> list[float]:
    parts = [part / 255 for part in colour.rgb]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def seen(colour: Color, matrix: Matrix | None) -> list[float]:
    """Linear light as an eye of that kind has it."""
    light = linear(colour)
    if matrix is None:
        return light
    return [min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in matrix]


def lab(light: list[float]) -> tuple[float, float, float]:
    """CIELAB of linear sRGB, white D65."""
    red, green, blue = light
    xyz = (
        (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047,
        0.2126729 * red + 0.7151522 * green + 0.0721750 * blue,
        (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883,
    )
    x, y, z = (part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116 for part in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(theme: Loaded, one: str, other: str, matrix: Matrix | None) -> float:
    first, second = (lab(seen(theme.roles[role].colour, matrix)) for role in (one, other))
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5


@pytest.mark.parametrize("name", KNOWN)
def test_every_word_of_a_theme_is_readable_on_every_ground_that_it_is_drawn_on(name: str) -> None:
    theme = SHIPPED[name]
    found = {(pair.role, pair.ground): pair.ratio for pair in theme_contrast.pairs(theme)}
    grounds = ("background", *themes.GROUNDS)
    assert {ground for _, ground in found} == set(grounds)
    low = {(r, g): round(found[r, g], 2) for r in TEXTS for g in grounds if found[r, g] < 4.5}
    assert low == {}
    assert {g: found["bar-full", g] for g in grounds if found["bar-full", g] < 3} == {}
    assert theme_contrast.weak(theme) == []


def test_high_contrast_keeps_seven_to_one_for_every_word() -> None:
    low = [p for p in theme_contrast.pairs(SHIPPED["high-contrast"]) if p.role in TEXTS and p.ratio < 7]
    assert low == []


@pytest.mark.parametrize(
    ("one", "other", "wanted"), [("#fff", "#000", 21.0), ("#777", "#fff", 4.48), ("#0a0", "#0a0", 1)]
)
def test_contrast_is_that_of_wcag(one: str, other: str, wanted: float) -> None:
    assert theme_contrast.ratio(Color.parse(one), Color.parse(other)) == pytest.approx(wanted, abs=0.01)
    assert theme_contrast.ratio(Color.parse(other), Color.parse(one)) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("eye", [None, *BLINDNESS])
@pytest.mark.parametrize(("one", "other"), itertools.combinations(STATES, 2))
def test_the_colour_blind_theme_tells_states_apart_for_every_kind_of_eye(eye: str | None, one: str, other: str) -> None:
    matrix = BLINDNESS[eye] if eye else None
    assert distance(SHIPPED["colour-blind"], one, other, matrix) >= APART


def test_the_measure_sees_what_red_and_green_are_to_a_colour_blind_eye() -> None:
    """The dark theme's danger and attention stand nearer to each other for a deutan eye: why there is another theme."""
    dark, safe = SHIPPED["dark"], SHIPPED["colour-blind"]
    assert distance(dark, "good", "failed", BLINDNESS["deutan"]) < APART
    assert distance(safe, "good", "failed", BLINDNESS["deutan"]) > APART


def test_monochrome_has_no_colour_and_says_danger_and_attention_by_weight() -> None:
    theme = SHIPPED["monochrome"]
    inks = [*theme.roles.values(), *theme.grounds.values()]
    assert all(len(set(ink.colour.rgb)) == 1 for ink in inks)
    assert all(len(set(Color.parse(str(getattr(theme.theme, key))).rgb)) == 1 for key in themes.COLOURS)
    assert {"bold"} <= set(theme.roles["attention"].weights)
    assert {"bold", "underline"} <= set(theme.roles["danger"].weights)
    assert "reverse" in theme.grounds["attention"].weights


def test_the_terminal_theme_uses_the_terminals_own_colours_and_none_that_some_palettes_hide() -> None:
    theme = SHIPPED["terminal"]
    inks = [*theme.roles.values(), *theme.grounds.values()]
    assert all(ink.colour.ansi is not None and ink.on is None for ink in inks)
    assert theme.theme.ansi
    risky = {Color.parse(f"ansi_{name}").ansi for name in ("yellow", "cyan", "white", "black", "bright_black")}
    assert not [role for role, ink in theme.roles.items() if ink.colour.ansi in risky]


@pytest.mark.rule("V1")
def test_a_state_is_told_by_glyph_and_word_so_that_no_colour_is_needed() -> None:
    shown = [words.STATUS[status] for status in Status]
    assert all(glyph.isascii() and len(glyph) == 1 and word for glyph, word in shown)
    assert len({word for _, word in shown}) == len(shown)
    assert set(STATUS_ROLE) == set(Status)
    wanted = {words.STATUS[status][0] for status in words.NEEDS_A_HUMAN}
    assert wanted == {"!"}
    assert "!" not in {words.STATUS[status][0] for status in Status if status not in words.NEEDS_A_HUMAN}
