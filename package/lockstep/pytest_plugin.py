"""Plugin of pytest: `pytest --lockstep` runs tests that use PyCUDA or CuPy on the simulator, with its checkers."""

from __future__ import annotations

import pytest

import lockstep

_MARKER = "lockstep_hardware"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --lockstep."""
    parser.getgroup("lockstep").addoption(
        "--lockstep",
        action="store_true",
        help="run PyCUDA's and CuPy's kernels on Lockstep's simulator; a race or another finding fails its test",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put the simulator in PyCUDA's and CuPy's place, before a conftest.py or a test module imports them."""
    if early_config.known_args_namespace.lockstep:
        lockstep.add_app_to_path()
        from lockstep.launch_checks import LaunchChecks

        early_config.pluginmanager.register(LaunchChecks())


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", f"{_MARKER}: needs a real GPU, so it is skipped with --lockstep")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that need a real GPU."""
    if config.getoption("--lockstep"):
        for item in items:
            if item.get_closest_marker(_MARKER):
                item.add_marker(pytest.mark.skip(reason="needs a real GPU"))
