/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/reported.h"

__thread struct evc__reported evc__reported;
