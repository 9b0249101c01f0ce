#pragma once

// The version of these headers, which is the one of the libraries (semver.org). While the major
// number is 0, a change of the minor number may break a program that uses them.
#define ZEROPROOF_VERSION_MAJOR 0
#define ZEROPROOF_VERSION_MINOR 2
#define ZEROPROOF_VERSION_PATCH 0

// For #if: ZEROPROOF_VERSION >= ZEROPROOF_VERSION_NUMBER(0, 2, 0).
#define ZEROPROOF_VERSION_NUMBER(major, minor, patch) ((major)*1'000'000 + (minor)*1'000 + (patch))
#define ZEROPROOF_VERSION                                                    \
  ZEROPROOF_VERSION_NUMBER(ZEROPROOF_VERSION_MAJOR, ZEROPROOF_VERSION_MINOR, \
                           ZEROPROOF_VERSION_PATCH)
