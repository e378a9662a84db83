#include <stela/testing/scenario.hpp>

#include <typeinfo>

namespace stela::testing::detail {
namespace {

std::string list(const std::vector<std::string>& events) {
  if (events.empty()) return "  (none)\n";
  std::string text;
  for (const std::string& event : events) text += "  " + event + '\n';
  return text;
}

}  // namespace

void compare_events(const std::vector<std::string>& expected,
                    const std::vector<std::string>& actual) {
  if (expected == actual) return;
  fail("expected the events\n" + list(expected) + "but these were recorded\n" + list(actual));
}

void compare_states(const std::string& expected, const std::string& actual) {
  if (expected == actual) return;
  fail("expected the state\n  " + expected + "\nbut it is\n  " + actual + '\n');
}

void fail(const std::string& message) {
  throw ScenarioFailed{message};
}

std::string describe(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& e) {
    return std::string{typeid(e).name()} + ": " + e.what();
  } catch (...) {
    return "something that isn't a std::exception";
  }
}

}  // namespace stela::testing::detail
