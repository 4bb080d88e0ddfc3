// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which of the names given can be opened: a line each. For places_test.sh.
// Usage: names12|names20 NAME...
#include "api.h"

#include <cstdio>

int main(int, char** names) {
    while (*++names) {
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
        if (dat_ia_open(*names, 8, &async, &ia) == DAT_SUCCESS) {
            std::puts(*names);
            dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
        }
    }
    return 0;
}
