"""Show a pattern's page in the state that a lesson step defines."""

from __future__ import annotations

from gpu.declaration.pattern import Preset
from gpu.messages.lessons import StepScene
from gui.window.pages.page_stack import Pages
from gui.window.pages.pattern_page import PatternPage


def show_scene(pages: Pages, scene: StepScene) -> PatternPage:
    """Show the page of a scene's pattern, with its variant and parameters, at its tab."""
    pages.choose_pattern(scene.pattern)
    page = pages.page
    page.show_example(Preset(scene.title, "", scene.parameters, scene.variant))
    page.select_tab(scene.tab.capitalize())
    return page
