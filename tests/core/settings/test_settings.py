"""Sources are heard in order of strength, faults all at once, and what has no right to speak is refused."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal
from pathlib import PurePath
from typing import ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.errors import SettingsError
from sevenfold.core.events import SettingRefused
from sevenfold.core.settings import (
    SettingOrigin,
    Settings,
    SettingSource,
    amount,
    choice,
    file_path,
    limit,
    limits,
    list_specs,
    names,
    percent,
    price,
    switch,
)
from sevenfold.core.settings.kinds import LimitTable
from sevenfold.core.settings.merge import MAX_FAULTS, MAX_PROBLEMS, RawSettings, merge_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Kettle:
    SECTION: ClassVar[str] = "kettle"

    enabled: bool = switch(True, off_by="DISABLE_KETTLE")
    cups: int = limit(10, at_least=1, at_most=100)
    spare: int | None = amount(None)
    heat: Decimal | None = percent(None, alias="OLD_HEAT")
    shelf: PurePath | None = file_path(None, alias="SEVENFOLD_SHELF")
    tea: str = choice("green", "green", "black")
    guests: tuple[str, ...] = names(("Ann",))
    spoons: LimitTable = limits(LimitTable(), at_least=1, base="cups")


@dataclass(frozen=True, slots=True)
class Blend:
    SECTION: ClassVar[str] = "blends"
    EACH: ClassVar[str] = "blend"

    usd: Decimal | None = price(None)
    grams: int = limit(5)


HOME = PurePath("/people/ann")


def heard(*drafts: tuple[SettingSource, Mapping[str, object]], **environ: str) -> Settings:
    """What these sources amount to, once a person has agreed to the committed file."""
    told = [
        RawSettings(source=source, where=f"/{source.name.lower()}.toml", tables=tables, is_agreed=True)
        for source, tables in drafts
    ]
    return merge_settings([Kettle, Blend], told, environ=environ, user_home=HOME)


def failure(*drafts: tuple[SettingSource, Mapping[str, object]], **environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        heard(*drafts, **environ)
    return str(caught.value)


def test_without_a_source_every_value_is_the_default() -> None:
    settings = heard()
    assert settings.of(Kettle) == Kettle()
    assert settings.each(Blend) == {}
    assert {item.origin.source for item in settings.resolved} == {SettingSource.DEFAULT}
    assert len(settings.resolved) == 8


ORDER = (
    SettingSource.COMMITTED,
    SettingSource.USER,
    SettingSource.LOCAL,
    SettingSource.ENVIRONMENT,
    SettingSource.ARGUMENT,
    SettingSource.MANAGED,
)


@given(st.lists(st.sampled_from(ORDER), min_size=1, unique=True))
def test_the_strongest_source_wins_in_whatever_order_they_are_heard(present: list[SettingSource]) -> None:
    cups = {source: rank + 1 for rank, source in enumerate(ORDER)}
    files = [source for source in present if source is not SettingSource.ENVIRONMENT]
    drafts = [(source, {"kettle": {"cups": cups[source]}}) for source in files]
    environ = (
        {"SEVENFOLD_KETTLE_CUPS": str(cups[SettingSource.ENVIRONMENT])}
        if SettingSource.ENVIRONMENT in present
        else {}
    )
    settings = heard(*drafts, **environ)
    winner = max(present, key=ORDER.index)
    assert settings.of(Kettle).cups == cups[winner]
    assert settings.origin("kettle.cups").source is winner


def test_each_value_knows_where_it_came_from() -> None:
    settings = heard((SettingSource.USER, {"kettle": {"cups": 3}}), SEVENFOLD_KETTLE_TEA="black")
    assert settings.origin("kettle.cups") == SettingOrigin(SettingSource.USER, "/user.toml")
    assert settings.origin("kettle.tea") == SettingOrigin(SettingSource.ENVIRONMENT, "SEVENFOLD_KETTLE_TEA")
    assert str(settings.origin("kettle.cups")) == "user file (/user.toml)"
    assert str(settings.origin("kettle.guests")) == "default"


def test_an_off_switch_beats_every_setting_but_the_managed_policy() -> None:
    on = {"kettle": {"enabled": True}}
    weaker = [(source, on) for source in (SettingSource.USER, SettingSource.LOCAL, SettingSource.ARGUMENT)]
    off = heard(*weaker, DISABLE_KETTLE="1", SEVENFOLD_KETTLE_ENABLED="true")
    assert not off.of(Kettle).enabled
    assert off.origin("kettle.enabled") == SettingOrigin(SettingSource.SWITCH, "DISABLE_KETTLE")
    assert heard((SettingSource.MANAGED, on), DISABLE_KETTLE="1").of(Kettle).enabled


@pytest.mark.parametrize("text", ["0", "false", "No", "off", "", " "])
def test_an_off_switch_that_says_no_switches_nothing(text: str) -> None:
    off = (SettingSource.USER, {"kettle": {"enabled": False}})
    assert heard(DISABLE_KETTLE=text).of(Kettle).enabled
    assert not heard(off, DISABLE_KETTLE=text).of(Kettle).enabled


def test_another_programs_variable_that_cannot_be_read_is_told_and_stops_nothing() -> None:
    settings = heard(DISABLE_KETTLE="perhaps", OLD_HEAT="200%", SEVENFOLD_KETTLE_CUPS="3")
    assert settings.of(Kettle) == Kettle(cups=3)
    assert {(item.source, item.key) for item in settings.refused} == {
        ("environment", "DISABLE_KETTLE"),
        ("environment", "OLD_HEAT"),
    }
    assert all("expected" in item.reason for item in settings.refused)


def test_our_own_name_counts_beside_another_programs_that_cannot_be_read() -> None:
    settings = heard(OLD_HEAT="hot", SEVENFOLD_KETTLE_HEAT="60")
    assert settings.of(Kettle).heat == 60
    assert [item.key for item in settings.refused] == ["OLD_HEAT"]


def test_an_alias_is_read_and_our_own_name_wins_over_it() -> None:
    assert heard(OLD_HEAT="50").of(Kettle).heat == 50
    both = heard(OLD_HEAT="50", SEVENFOLD_KETTLE_HEAT="60")
    assert both.of(Kettle).heat == 60
    assert both.origin("kettle.heat").where == "SEVENFOLD_KETTLE_HEAT"


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert heard(OLD_HEAT="", SEVENFOLD_KETTLE_CUPS="").of(Kettle) == Kettle()


def test_a_tilde_stands_for_the_users_folder() -> None:
    assert heard(SEVENFOLD_SHELF="~/tea/tins").of(Kettle).shelf == PurePath("/people/ann/tea/tins")
    assert heard(SEVENFOLD_SHELF="~").of(Kettle).shelf == HOME
    assert heard(SEVENFOLD_SHELF="/tins").of(Kettle).shelf == PurePath("/tins")


def test_tables_add_to_one_another_name_by_name() -> None:
    settings = heard(
        (SettingSource.USER, {"kettle": {"spoons": {"Bo": 1, "Cy": 2}}}),
        (SettingSource.MANAGED, {"kettle": {"spoons": {"Cy": 3}}}),
        SEVENFOLD_KETTLE_SPOONS="Di=4",
    )
    assert settings.of(Kettle).spoons == {"Bo": 1, "Cy": 3, "Di": 4}
    where = {item.key: item.origin.source for item in settings.resolved if ".spoons" in item.key}
    assert where == {
        "kettle.spoons.Bo": SettingSource.USER,
        "kettle.spoons.Cy": SettingSource.MANAGED,
        "kettle.spoons.Di": SettingSource.ENVIRONMENT,
    }
    assert settings.origin("kettle.spoons").source is SettingSource.MANAGED


def test_named_sections_merge_by_name() -> None:
    settings = heard(
        (SettingSource.USER, {"blends": {"earl.grey": {"usd": Decimal("0.5"), "grams": 7}, "assam": {}}}),
        (SettingSource.LOCAL, {"blends": {"earl.grey": {"grams": 8}}}),
    )
    assert settings.each(Blend) == {"earl.grey": Blend(Decimal("0.5"), 8)}
    assert settings.origin('blends."earl.grey".grams').source is SettingSource.LOCAL
    assert settings.origin('blends."earl.grey".usd').source is SettingSource.USER


def test_an_argument_of_none_is_one_that_was_not_given() -> None:
    assert heard((SettingSource.ARGUMENT, {"kettle": {"cups": None}})).of(Kettle) == Kettle()


def test_a_committed_file_is_heard_as_far_as_it_may_speak() -> None:
    settings = heard(
        (
            SettingSource.COMMITTED,
            {
                "kettle": {
                    "enabled": False,
                    "cups": 11,
                    "shelf": "/etc",
                    "tea": "black",
                    "heat": 5,
                    "spare": 0,
                    "guests": [],
                    "spoons": {"Bo": 10, "Cy": 11},
                },
                "blends": {"assam": {"usd": 0}},
            },
        )
    )
    assert settings.of(Kettle) == Kettle(enabled=False, spoons=LimitTable({"Bo": 10}))
    assert settings.each(Blend) == {}
    assert {item.key for item in settings.refused} == {
        "kettle.cups",
        "kettle.shelf",
        "kettle.tea",
        "kettle.heat",
        "kettle.spare",
        "kettle.guests",
        "kettle.spoons.Cy",
        "blends.assam",
    }
    assert {item.source for item in settings.refused} == {"/committed.toml"}
    lowered = SettingRefused(
        "/committed.toml",
        "kettle.cups",
        "a committed file may lower limits, not raise them (the default is 10)",
    )
    assert lowered in settings.refused


@given(
    st.sampled_from([SettingSource.USER, SettingSource.LOCAL, SettingSource.ARGUMENT, SettingSource.MANAGED]),
    st.integers(2, 99),
)
def test_a_committed_row_never_goes_over_the_limit_that_came_out(source: SettingSource, cups: int) -> None:
    settings = heard(
        (SettingSource.COMMITTED, {"kettle": {"spoons": {"Bo": cups, "Cy": cups + 1, "Di": 1}}}),
        (source, {"kettle": {"cups": cups}}),
    )
    assert settings.of(Kettle).spoons == {"Bo": cups, "Di": 1}
    assert settings.refused == (
        SettingRefused(
            "/committed.toml",
            "kettle.spoons.Cy",
            f"a committed file may lower limits, not raise them (cups is {cups})",
        ),
    )


def test_a_managed_limit_holds_for_every_row_of_weaker_sources() -> None:
    settings = heard(
        (SettingSource.COMMITTED, {"kettle": {"spoons": {"Bo": 4}}}),
        (SettingSource.USER, {"kettle": {"spoons": {"Bo": 6, "Cy": 5}}}),
        (SettingSource.ARGUMENT, {"kettle": {"spoons": {"Di": 7}}}),
        (SettingSource.MANAGED, {"kettle": {"cups": 5, "spoons": {"Ed": 9}}}),
        SEVENFOLD_KETTLE_SPOONS="Fay=8",
    )
    assert settings.of(Kettle).spoons == {"Bo": 4, "Cy": 5, "Ed": 9}
    reason = "the managed policy sets kettle.cups to 5, and no other source may go over it"
    assert settings.refused == (
        SettingRefused("/user.toml", "kettle.spoons.Bo", reason),
        SettingRefused("SEVENFOLD_KETTLE_SPOONS", "kettle.spoons.Fay", reason),
        SettingRefused("/argument.toml", "kettle.spoons.Di", reason),
    )


def test_a_trusted_row_may_go_over_a_limit_that_no_policy_sets() -> None:
    settings = heard((SettingSource.USER, {"kettle": {"cups": 5, "spoons": {"Bo": 50}}}))
    assert settings.of(Kettle).spoons == {"Bo": 50}
    assert settings.refused == ()


@pytest.mark.parametrize(
    "source", [SettingSource.USER, SettingSource.LOCAL, SettingSource.ARGUMENT, SettingSource.MANAGED]
)
def test_trusted_sources_may_set_everything(source: SettingSource) -> None:
    tables = {"kettle": {"cups": 99, "shelf": "/etc"}, "blends": {"assam": {"usd": 0}}}
    settings = heard((source, tables))
    assert settings.refused == ()
    assert settings.of(Kettle).cups == 99
    assert settings.each(Blend)["assam"].usd == 0


FAULTS = pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"kettle": {"cups": "many"}}, "kettle.cups = 'many': expected a whole number from 1 to 100"),
        ({"kettle": {"cups": 0}}, "kettle.cups = 0: expected a whole number from 1 to 100"),
        ({"kettle": {"enabled": 1}}, "kettle.enabled = 1: expected true or false"),
        ({"kettle": {"tea": "mint"}}, "kettle.tea = 'mint': expected one of green, black"),
        ({"kettle": {"shelf": "tins"}}, "expected an absolute path, or one that starts with ~/"),
        ({"kettle": {"cup": 5}}, "kettle.cup is not a setting; did you mean kettle.cups?"),
        ({"kettle": {"zzz": 5}}, "kettle.zzz is not a setting; there are kettle.enabled, kettle.cups"),
        ({"ketle": {"cups": 5}}, "ketle is not a setting; did you mean [kettle]?"),
        ({"zzz": {}}, "zzz is not a setting; there are [kettle], [blends]"),
        ({"kettle": 5}, "kettle = 5: expected a table, [kettle]"),
        ({"blends": {"assam": 5}}, 'blends.assam = 5: expected a table, [blends."name"]'),
        ({"blends": {"as sam": {}}}, "blends = 'as sam': expected a name of printable characters"),
        ({"kettle": {"\x1b[31m": 5}}, r'kettle."\x1b[31m" is not a setting'),
        ({"kettle": {"cups": "x" * 100_000}}, "xx...xx"),
    ],
)


@FAULTS
@pytest.mark.parametrize("source", [SettingSource.LOCAL, SettingSource.USER, SettingSource.MANAGED])
def test_a_fault_names_file_key_value_and_what_is_allowed(
    source: SettingSource, tables: Mapping[str, object], message: str
) -> None:
    said = failure((source, tables))
    assert said.startswith(f"/{source.name.lower()}.toml: ")
    assert message in said
    assert len(said) < 400
    assert "\x1b" not in said


@FAULTS
def test_a_fault_in_a_committed_file_is_told_and_the_rest_of_it_counts(
    tables: Mapping[str, object], message: str
) -> None:
    kettle = tables.get("kettle", {})
    rest = {"kettle": {**cast("dict[str, object]", kettle), "spoons": {"Bo": 3}}} if kettle != 5 else {}
    settings = heard((SettingSource.COMMITTED, {**tables, **rest}))
    (told,) = settings.refused
    assert told.source == "/committed.toml"
    assert message.partition(" = ")[2] in told.reason or told.key in message
    assert len(told.reason) < 400
    assert "\x1b" not in told.key + told.reason
    assert settings.of(Kettle) == (Kettle(spoons=LimitTable({"Bo": 3})) if rest else Kettle())


def test_a_committed_file_full_of_faults_is_told_of_in_a_few_words() -> None:
    tables = {"kettle": {f"cup{n}": n for n in range(50_000)} | {"cups": 2}}
    settings = heard((SettingSource.COMMITTED, tables))
    assert len(settings.refused) == MAX_FAULTS + 1
    assert settings.refused[-1].key == "(more)"
    assert settings.of(Kettle).cups == 2


def test_a_fault_in_a_named_section_names_all_of_its_key() -> None:
    assert "did you mean blends.assam.grams?" in failure(
        (SettingSource.USER, {"blends": {"assam": {"gram": 5}}})
    )
    said = failure((SettingSource.USER, {"blends": {"assam": {"usd": "free"}}}))
    assert "blends.assam.usd = 'free': expected US dollars per million" in said


def test_a_fault_in_an_argument_or_a_variable_names_that() -> None:
    told = [RawSettings(source=SettingSource.ARGUMENT, where="", tables={"kettle": {"cups": 0}})]
    with pytest.raises(SettingsError, match=r"^keyword argument: kettle\.cups = 0"):
        merge_settings([Kettle], told, environ={}, user_home=HOME)
    assert failure(SEVENFOLD_KETTLE_CUPS="lots").startswith("environment: SEVENFOLD_KETTLE_CUPS = 'lots'")


def test_every_fault_of_every_source_is_told_at_once() -> None:
    said = failure(
        (SettingSource.USER, {"kettle": {"cups": 0, "cup": 1}}),
        (SettingSource.LOCAL, {"kettle": {"enabled": 2}}),
        SEVENFOLD_KETTLE_CUPS="lots",
    )
    assert said.splitlines()[0] == "4 settings cannot be used:"
    assert len(said.splitlines()) == 5


def test_what_went_wrong_before_is_told_with_the_rest() -> None:
    with pytest.raises(SettingsError, match=r"(?s)2 settings.*- /a\.toml: not TOML.*- environment: SEVEN"):
        merge_settings(
            [Kettle],
            [],
            environ={"SEVENFOLD_KETTLE_CUPS": "x"},
            user_home=HOME,
            problems=["/a.toml: not TOML"],
        )


def test_a_flood_of_faults_is_cut_short() -> None:
    said = failure((SettingSource.USER, {"kettle": {f"x{number}": 1 for number in range(MAX_PROBLEMS + 5)}}))
    assert said.splitlines()[-1] == "- and 5 more"
    assert len(said.splitlines()) == MAX_PROBLEMS + 2


@pytest.mark.parametrize(
    ("variable", "reason"),
    [
        ("SEVENFOLD_KETTLE_CUP", "no setting has this name; did you mean SEVENFOLD_KETTLE_CUPS?"),
        ("SEVENFOLD_KETLE_CUPS", "no setting has this name; did you mean SEVENFOLD_KETTLE_CUPS?"),
        ("SEVENFOLD_KETTLE_QQQQQQQQQQQQQQQQ", "no setting has this name"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_reported(variable: str, reason: str) -> None:
    assert heard(**{variable: "5"}).refused == (SettingRefused("environment", variable, reason),)


def test_a_variable_of_somebody_else_is_left_alone() -> None:
    assert heard(SEVENFOLD_DEBUG="1", KETTLE_CUPS="5", PATH="/bin").refused == ()


def test_settings_cannot_be_changed() -> None:
    settings = heard()
    with pytest.raises(FrozenInstanceError):
        settings.of(Kettle).cups = 5  # pyright: ignore[reportAttributeAccessIssue]
    assert hash(settings) == hash(heard())


def test_asking_for_what_was_not_resolved_says_so() -> None:
    settings = merge_settings([Kettle], [], environ={}, user_home=HOME)
    with pytest.raises(SettingsError, match="Blend was not among the sections"):
        settings.of(Blend)
    with pytest.raises(SettingsError, match=r"no setting is called 'kettle\.cup'"):
        settings.origin("kettle.cup")


def test_a_setting_has_one_name_in_files_and_environment() -> None:
    specs = {spec.key: spec.variable for spec in list_specs([Kettle, Blend])}
    assert specs["kettle.cups"] == "SEVENFOLD_KETTLE_CUPS"
    assert specs["blends.usd"] is None


def test_a_field_without_a_kind_is_the_programmers_mistake() -> None:
    @dataclass(frozen=True, slots=True)
    class Bare:
        SECTION: ClassVar[str] = "bare"
        cups: int = 5

    with pytest.raises(TypeError, match=r"Bare\.cups is declared without a kind"):
        list_specs([Bare])


def test_a_table_whose_base_is_no_limit_is_the_programmers_mistake() -> None:
    @dataclass(frozen=True, slots=True)
    class Drawer:
        SECTION: ClassVar[str] = "drawer"
        depth: int = amount(5)
        spoons: LimitTable = limits(LimitTable(), at_least=1, base="depth")

    with pytest.raises(TypeError, match=r"drawer\.spoons names depth as its base, which is no limit"):
        list_specs([Drawer])


def test_two_settings_of_one_variable_are_the_programmers_mistake() -> None:
    @dataclass(frozen=True, slots=True)
    class Tea:
        SECTION: ClassVar[str] = "tea"
        pot_cups: int = limit(5)

    @dataclass(frozen=True, slots=True)
    class TeaPot:
        SECTION: ClassVar[str] = "tea_pot"
        cups: int = limit(5)

    with pytest.raises(
        TypeError, match=r"SEVENFOLD_TEA_POT_CUPS would set both tea\.pot_cups and tea_pot\.cups"
    ):
        list_specs([Tea, TeaPot])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["enabled", "cups", "shelf", "spoons", "heat", "guests"]) | st.text(max_size=5)
TABLES = st.dictionaries(
    st.sampled_from(["kettle", "blends"]) | st.text(max_size=5), st.dictionaries(KEYS, ANYTHING, max_size=4)
)


@given(st.sampled_from(ORDER), TABLES, st.dictionaries(st.text(max_size=30), st.text(max_size=10)))
def test_whatever_a_source_says_there_are_settings_or_one_settings_error(
    source: SettingSource, tables: dict[str, object], environ: dict[str, str]
) -> None:
    settings = heard()
    with suppress(SettingsError):
        settings = heard((source, tables), **environ)
    kettle = settings.of(Kettle)
    assert 1 <= kettle.cups <= 100
    if source is SettingSource.COMMITTED:
        assert kettle.cups <= 10
        assert kettle.shelf is None
        assert settings.each(Blend) == {}
