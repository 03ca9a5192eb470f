"""LLVM's text: functions under construction, and the instructions of operators and expressions."""
