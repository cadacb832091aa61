/*
 * race.h - whether a build tests only as much as ThreadSanitizer needs
 *
 * ThreadSanitizer makes tests 5 to 15 times as slow. A race or a missing barrier shows with most
 * numbers, lengths and keys. So tests that repeat code with other numbers do this less often if
 * FOR_RACES_ONLY is 1. Other builds test all numbers.
 */
#pragma once

#ifdef __SANITIZE_THREAD__
#define FOR_RACES_ONLY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FOR_RACES_ONLY 1
#endif
#endif
#ifndef FOR_RACES_ONLY
#define FOR_RACES_ONLY 0
#endif
