"""Errors of the runtime API: CUDA's numbers, names and texts."""

from __future__ import annotations

INVALID_VALUE = 1
NO_MEMORY = 2
INVALID_CONFIGURATION = 9
INVALID_SYMBOL = 13
INVALID_CHANNEL_DESCRIPTOR = 20
INVALID_COPY_DIRECTION = 21
INVALID_FUNCTION = 98
INVALID_DEVICE = 101
PEER_ACCESS_UNSUPPORTED = 217
FILE_NOT_FOUND = 301
INVALID_HANDLE = 400
ILLEGAL_STATE = 401
SYMBOL_NOT_FOUND = 500
ILLEGAL_ADDRESS = 700
OUT_OF_RESOURCES = 701
ALREADY_REGISTERED = 712
NOT_REGISTERED = 713
NOT_READY = 600
LAUNCH_FAILURE = 719
COOPERATIVE_LAUNCH_TOO_LARGE = 720
NOT_SUPPORTED = 801
CAPTURE_UNSUPPORTED = 900
CAPTURE_INVALIDATED = 901
CAPTURE_MERGE = 902
CAPTURE_UNMATCHED = 903
CAPTURE_UNJOINED = 904
CAPTURE_ISOLATION = 905
CAPTURE_IMPLICIT = 906
CAPTURED_EVENT = 907
UPDATE_FAILURE = 910

ERRORS: dict[int, tuple[str, str]] = {
    0: ("cudaSuccess", "no error"),
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    3: ("cudaErrorInitializationError", "initialization error"),
    4: ("cudaErrorCudartUnloading", "driver shutting down"),
    9: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    12: ("cudaErrorInvalidPitchValue", "invalid pitch argument"),
    13: ("cudaErrorInvalidSymbol", "invalid device symbol"),
    16: ("cudaErrorInvalidHostPointer", "invalid host pointer"),
    17: ("cudaErrorInvalidDevicePointer", "invalid device pointer"),
    18: ("cudaErrorInvalidTexture", "invalid texture reference"),
    20: ("cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"),
    21: ("cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    35: ("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    98: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    209: ("cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"),
    217: ("cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    401: ("cudaErrorIllegalState", "the operation cannot be performed in the present state"),
    301: ("cudaErrorFileNotFound", "file not found"),
    500: ("cudaErrorSymbolNotFound", "named symbol not found"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    701: ("cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    702: ("cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    705: ("cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"),
    710: ("cudaErrorAssert", "device-side assert triggered"),
    712: ("cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"),
    713: ("cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"),
    716: ("cudaErrorMisalignedAddress", "misaligned address"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    720: ("cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"),
    800: ("cudaErrorNotPermitted", "operation not permitted"),
    801: ("cudaErrorNotSupported", "operation not supported"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"),
    902: ("cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"),
    903: ("cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"),
    904: ("cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"),
    905: ("cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"),
    906: (
        "cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream",
    ),
    907: ("cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"),
    910: (
        "cudaErrorGraphExecUpdateFailure",
        (
            "the graph update was not performed because it included changes which violated constraints specific to"
            " instantiated graph update"
        ),
    ),
    999: ("cudaErrorUnknown", "unknown error"),
}
"""Name and text of each error, by number."""


class RefusedRoutineError(Exception):
    """A routine failed with this error number."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code
