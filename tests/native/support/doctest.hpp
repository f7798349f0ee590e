// doctest as this build can have it: the library is compiled without exceptions.
#pragma once

#define DOCTEST_CONFIG_NO_EXCEPTIONS_BUT_WITH_ALL_ASSERTS
#include <doctest/doctest.h>
