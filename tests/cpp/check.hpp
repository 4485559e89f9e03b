// The smallest test framework that serves: TEST(property) registers, CHECK reports and goes on.
#pragma once

#include <cstddef>
#include <exception>
#include <source_location>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hiernorm::testing {

struct Test {
    const char* name;
    void (*run)();
};

// All tests, in the order of registration.
std::vector<Test>& registry();

struct Registered {
    Registered(const char* name, void (*run)()) { registry().push_back({name, run}); }
};

// Counts a failure of the running test and prints it; safe to call from any thread.
void fail(std::string_view what, std::source_location where);

// What the checks that follow are about, for the message; of this thread.
class Context {
   public:
    template <class... Parts>
    explicit Context(const Parts&... parts) : outer_(current()) {
        std::ostringstream text;
        (text << ... << parts);
        current() = outer_.empty() ? text.str() : outer_ + ", " + text.str();
    }
    ~Context() { current() = outer_; }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    static std::string& current() {
        thread_local std::string text;
        return text;
    }

   private:
    std::string outer_;
};

inline bool check(bool condition, const char* expression,
                  std::source_location where = std::source_location::current()) {
    if (!condition) fail(expression, where);
    return condition;
}

template <class A, class B>
bool check_equal(const A& got, const B& expected, const char* expression,
                 std::source_location where = std::source_location::current()) {
    if (got == expected) return true;
    std::ostringstream text;
    text << expression << " is " << got << ", expected " << expected;
    fail(text.str(), where);
    return false;
}

// Whether `call` throws an Exception whose message contains `words`.
template <class Exception, class Call>
bool check_throws(Call call, std::string_view words,
                  std::source_location where = std::source_location::current()) {
    try {
        call();
    } catch (const Exception& error) {
        if (std::string_view(error.what()).find(words) != std::string_view::npos) return true;
        fail("the message is: " + std::string(error.what()), where);
        return false;
    }
    fail("no exception; expected one that says: " + std::string(words), where);
    return false;
}

}  // namespace hiernorm::testing

#define TEST(property)                                                                       \
    static void property();                                                                  \
    static const ::hiernorm::testing::Registered property##_registered(#property, property); \
    static void property()

#define CHECK(...) ::hiernorm::testing::check((__VA_ARGS__), #__VA_ARGS__)
#define CHECK_EQUAL(got, expected) ::hiernorm::testing::check_equal((got), (expected), #got)
