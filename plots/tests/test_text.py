# SPDX-License-Identifier: Apache-2.0
"""Text from files and numbers, as they are shown."""

import pytest

from plots import text, units


def test_printable_escapes_and_shortens():
    assert text.printable("a\n\x1b\u202eb µ") == "a\\n\\x1b\\u202eb µ"
    assert text.printable("x" * 10_000, 5) == "xxxxx… (10,000 characters)"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a|b", r"a\|b"),
        ("`code`", r"\`code\`"),
        ("<script>", r"\<script\>"),
        ("&lt;", r"\&lt;"),
        ("two\nlines", r"two\\nlines"),
        ("[text](url)", r"\[text\](url)"),
        (r"back\slash", r"back\\slash"),
        ("https://example.org", r"https\://example.org"),
        ("www.example.org", r"www\.example.org"),
        ("cpu_threads: 2", r"cpu\_threads: 2"),
    ],
)
def test_markdown_shows_text_literally(raw, shown):
    assert text.markdown(raw) == shown


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("amd-epyc-2c", "amd-epyc-2c"),
        ("../../etc/passwd", "etc-passwd"),
        ("/", "unnamed"),
        ("Ünï $x$", "n-x"),
        ("a" * 10_000, "a" * 60),
    ],
)
def test_slug_is_a_plain_file_name(raw, name):
    assert text.slug(raw) == name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (21.34e-6, "21.3 µs"),
        (0.0312, "31.2 ms"),
        (1.25, "1.25 s"),
        (0.9996, "1.00 s"),
        (999.4e-6, "999 µs"),
        (9.996e-3, "10.0 ms"),
        (1234.0, "1,230 s"),
        (5e-10, "0.500 ns"),
    ],
)
def test_seconds(value, shown):
    assert units.seconds(value) == shown


def test_ranges_name_the_unit_once():
    assert units.seconds_range(0.0312, 0.0315) == "31.2 – 31.5 ms"
    assert units.seconds_range(0.0009, 0.0011) == "900 µs – 1.10 ms"
    assert units.seconds_range(1.0, 1.0) == "1.00 s"


def test_axis_labels():
    assert [units.power_of_ten_count(10.0**k) for k in (1, 3, 5, 6)] == ["10", "1k", "100k", "1M"]
    powers = [units.power_of_ten_seconds(10.0**k) for k in (-7, -6, -4, -1, 0, 2)]
    assert powers == ["100 ns", "1 µs", "100 µs", "100 ms", "1 s", "100 s"]
