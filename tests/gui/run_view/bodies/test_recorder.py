"""Films are read back: as many frames as were recorded, of the colors that they had."""

from __future__ import annotations

import subprocess

import imageio_ffmpeg
import numpy as np
import pytest

from gui.run_view.bodies.recorder import GIF_WIDTH, FilmRecorder

COLORS = ((200, 30, 30), (30, 200, 30), (30, 30, 200))


def make_picture(color, width=64, height=48):
    made = np.zeros((height, width, 3), np.uint8)
    made[:, :] = color
    return made


def record_film(qtbot, path, frames, width=64, height=48):
    recorder = FilmRecorder(path, width, height)
    for frame in frames:
        recorder.add(frame)
    with qtbot.waitSignal(recorder.finished, timeout=20_000) as signal:
        recorder.finish()
    return signal.args[0]


def test_a_gif_shows_every_frame_once(qtbot, tmp_path):
    from PIL import Image

    path = tmp_path / "film.gif"
    assert record_film(qtbot, path, [make_picture(color) for color in COLORS]) == ""
    with Image.open(path) as film:
        assert film.n_frames == 3
        for number, color in enumerate(COLORS):
            film.seek(number)
            assert np.abs(np.asarray(film.convert("RGB"))[10, 10].astype(int) - color).max() < 8


def test_a_wide_gif_is_made_smaller(qtbot, tmp_path):
    from PIL import Image

    path = tmp_path / "film.gif"
    assert record_film(qtbot, path, [make_picture(COLORS[0], 1280, 720)] * 2, 1280, 720) == ""
    with Image.open(path) as film:
        assert film.size == (GIF_WIDTH, 360)


def test_an_mp4_has_every_frame(qtbot, tmp_path):
    path = tmp_path / "film.mp4"
    frames = [make_picture(color) for color in COLORS for _ in range(5)]
    assert record_film(qtbot, path, frames) == ""
    decode = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-f", "image2pipe", "-c:v", "ppm", "-"]
    decoded = subprocess.run(decode, check=True, capture_output=True).stdout
    header = b"P6\n64 48\n255\n"
    frames = np.frombuffer(decoded, np.uint8).reshape(15, len(header) + 48 * 64 * 3)
    assert [frame.tobytes() for frame in frames[:, : len(header)]] == [header] * 15
    colors = frames[:, len(header) :].reshape(15, 48, 64, 3)[:, 20, 20].argmax(axis=1)
    assert colors.tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_it_asks_to_wait_when_frames_come_too_fast(qtbot, tmp_path):
    recorder = FilmRecorder(tmp_path / "film.gif", 1920, 1080)
    said = []
    recorder.ready_changed.connect(said.append)
    frame = make_picture(COLORS[0], 1920, 1080)
    for _ in range(40):
        recorder.add(frame)
    qtbot.waitUntil(lambda: recorder.ready)
    assert said[:1] == [False]
    assert said[-1] is True
    recorder.discard_film()


@pytest.mark.parametrize("ending", [".gif", ".mp4"])
def test_giving_up_leaves_no_file(qtbot, tmp_path, ending):
    path = tmp_path / f"film{ending}"
    recorder = FilmRecorder(path, 64, 48)
    recorder.add(make_picture(COLORS[0]))
    recorder.discard_film()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".gif", ".mp4"])
def test_a_folder_that_is_not_there_is_told(qtbot, tmp_path, ending):
    problem = record_film(qtbot, tmp_path / "none" / f"film{ending}", [make_picture(COLORS[0])] * 2)
    assert problem.startswith("Cannot write ")
    assert f"film{ending}: there is no folder" in problem


def test_a_film_without_frames_is_told(qtbot, tmp_path):
    assert record_film(qtbot, tmp_path / "film.gif", []) == "film.gif was not written: no frame was recorded."
    assert list(tmp_path.iterdir()) == []


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.gif or \.mp4"):
        FilmRecorder(tmp_path / "film.avi", 64, 48)
