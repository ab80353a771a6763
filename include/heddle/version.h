/* version.h: the version of Heddle, for the preprocessor and for programs that run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_VERSION_H
#define HEDDLE_VERSION_H

#define HEDDLE_VERSION_MAJOR 0
#define HEDDLE_VERSION_MINOR 1
#define HEDDLE_VERSION_PATCH 0
#define HEDDLE_VERSION_STRING "0.1.0"

#endif
