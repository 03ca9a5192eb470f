// Compilation of a source at run time: the simulator keeps the source in place of PTX and machine code.
#pragma once
#include "cuda_runtime.h"

typedef enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6,
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
    NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
    NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_ERROR_INTERNAL_ERROR = 11
} nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

#define LOCKSTEP_NVRTC(name, parameters, ...)                                                                          \
    static inline nvrtcResult name parameters { return (nvrtcResult)::lockstep_host::call(__VA_ARGS__); }

LOCKSTEP_NVRTC(nvrtcCreateProgram,
               (nvrtcProgram * program, const char *source, const char *name, int header_count,
                const char *const *headers, const char *const *header_names),
               "nvrtc_create", program, source, name, header_count, headers, header_names)
LOCKSTEP_NVRTC(nvrtcDestroyProgram, (nvrtcProgram * program), "nvrtc_destroy", program)
LOCKSTEP_NVRTC(nvrtcAddNameExpression, (nvrtcProgram program, const char *name), "nvrtc_add_name", program, name)
LOCKSTEP_NVRTC(nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options), "nvrtc_compile",
               program, count, options)
LOCKSTEP_NVRTC(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *size), "nvrtc_text", program, 0, size, 0)
LOCKSTEP_NVRTC(nvrtcGetProgramLog, (nvrtcProgram program, char *log), "nvrtc_text", program, 0, 0, log)
LOCKSTEP_NVRTC(nvrtcGetPTXSize, (nvrtcProgram program, size_t *size), "nvrtc_text", program, 1, size, 0)
LOCKSTEP_NVRTC(nvrtcGetPTX, (nvrtcProgram program, char *code), "nvrtc_text", program, 1, 0, code)
LOCKSTEP_NVRTC(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *size), "nvrtc_text", program, 1, size, 0)
LOCKSTEP_NVRTC(nvrtcGetCUBIN, (nvrtcProgram program, char *code), "nvrtc_text", program, 1, 0, code)
LOCKSTEP_NVRTC(nvrtcGetLoweredName, (nvrtcProgram program, const char *name, const char **lowered), "nvrtc_lowered",
               program, name, lowered)
static inline nvrtcResult nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}
static inline const char *nvrtcGetErrorString(nvrtcResult result) {
    static const char *const names[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    };
    return (unsigned)result < sizeof names / sizeof *names ? names[result] : "NVRTC_ERROR unknown";
}
