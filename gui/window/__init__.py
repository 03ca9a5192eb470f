"""The window itself: pages, panes, actions, dialogs."""
