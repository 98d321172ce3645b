/* For every test program: checks that name their line, and a count at the end. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

static int passed, failed;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (condition) {                                                          \
            passed++;                                                             \
        } else {                                                                  \
            failed++;                                                             \
            printf("  FAIL  %s:%d: %s\n", __FILE__, __LINE__, #condition);        \
        }                                                                         \
    } while (0)

#define CHECK_STATUS(expected, call)                                              \
    do {                                                                          \
        int status_of_call = (int)(call);                                         \
        if (status_of_call == (int)(expected)) {                                  \
            passed++;                                                             \
        } else {                                                                  \
            failed++;                                                             \
            printf("  FAIL  %s:%d: %s gave %d (%s)\n", __FILE__, __LINE__, #call, \
                   status_of_call, muse_status_text(status_of_call));             \
        }                                                                         \
    } while (0)

static int report(const char *name) {
    printf("%s: %d passed, %d failed\n", name, passed, failed);
    return failed != 0;
}

#endif
