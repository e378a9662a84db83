// An author in a process of its own. Does what it is told on standard input, a command a line, and
// answers each with lines that end with a point:
//   act        does one thing; what came of it, what its listener heard, and what is wrong
//   die <n>    the same, but it dies at the n-th write to its files
//   begin      begins a transaction and does several things: "open", and waits for
//   commit     or anything else: ends it, and answers as to act
//   read       all events, as a store that is opened now reads them
// Arguments: the database, a seed, the author's name.
#include "projections/author.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"

#include <stela/framework/error.hpp>

#include <iostream>
#include <string>

namespace stela::test {
namespace {

class DiaryProcess {
 public:
  DiaryProcess(std::string path, unsigned seed, std::string name)
      : path_{std::move(path)}, author_{seed, std::move(name)} {}

  void run() {
    answer("ready");
    for (std::string command; std::getline(std::cin, command);) obey(command);
  }

 private:
  static void answer(const std::string& text) { std::cout << text << "\n.\n" << std::flush; }

  void obey(const std::string& command) {
    if (command == "read") return answer(all_events());
    if (command.starts_with("die ")) death_.arm(std::stoi(command.substr(4)));
    const std::string end =
        command == "begin" ? outcome_of([&] { keep_open(); }) : outcome_of([&] { act(); });
    death_.arm(0);
    answer(end + news());
  }

  void act() { author_.act(desk_.store); }

  void keep_open() {
    desk_.store.transact([&](Transaction& transaction) {
      author_.act_inside(transaction, 1);
      answer("open");
      std::string end;
      std::getline(std::cin, end);
      if (end != "commit") throw RollBack{};
    });
  }

  template <class Work>
  static std::string outcome_of(Work&& work) {
    try {
      work();
    } catch (const RollBack&) {
      return "rolled back";
    } catch (const ConcurrencyConflict&) {
      return "conflict";
    } catch (const UsageError&) {
      return "refused";
    } catch (const std::exception& e) {
      return std::string{"failed: "} + e.what();
    }
    return "done";
  }

  std::string news() {
    std::string news;
    for (const auto& [at, page] : desk_.take_heard()) {
      news += "\nheard " + std::to_string(at) + ' ' + page;
    }
    auto store = sqlite::open(path_);
    if (const std::string flaw = author_.flaw(store); !flaw.empty()) news += "\nflaw " + flaw;
    return news;
  }

  std::string all_events() const {
    auto store = sqlite::open(path_);
    std::string all;
    for (const std::string& line : full_lines(store.read_all())) all += line + '\n';
    return all;
  }

  std::string path_;
  DieAtNthWrite death_;
  FaultVfs vfs_{death_};
  Desk desk_{path_, vfs_.name()};
  Author author_;
};

}  // namespace
}  // namespace stela::test

int main(int count, char** arguments) {
  if (count != 4) return 2;
  stela::test::DiaryProcess{arguments[1], static_cast<unsigned>(std::stoul(arguments[2])),
                            arguments[3]}
      .run();
}
