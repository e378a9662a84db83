#include "decisions.hpp"

#include "shop.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace stela::bench {

School::School(std::int64_t size) : events{size} {
  for (std::int64_t i = 0; i < std::max<std::int64_t>(size / 20, 1); ++i) {
    courses.push_back(Id<Course>::from(basket_id(static_cast<std::size_t>(i)).key()));
  }
  for (std::int64_t i = 0; i < std::max<std::int64_t>(size / 5, 1); ++i) {
    students.push_back(Id<Student>::from(basket_id(static_cast<std::size_t>(size + i)).key()));
  }
}

void fill_school(EventStore& store, const School& school) {
  constexpr std::int64_t at_once = 500;
  constexpr std::int64_t seats = 1'000'000;
  const auto courses = static_cast<std::int64_t>(school.courses.size());
  Dice dice{23};
  const ContextScope scope{sample_context()};
  for (std::int64_t first = 0; first < school.events; first += at_once) {
    UnitOfWork unit{store};
    for (std::int64_t i = first; i < std::min(school.events, first + at_once); ++i) {
      const Id<Course>& course = school.courses[static_cast<std::size_t>(i % courses)];
      if (i < courses) {
        unit.append(course.stream(), ExpectedVersion::any(), CourseDefined{course, seats});
      } else {
        const Id<Student>& student = school.students[dice.below(school.students.size())];
        unit.append(course.stream(), ExpectedVersion::any(), Subscribed{course, student});
      }
    }
    unit.commit();
  }
}

void Subscribing::run() {
  const Id<Course>& course = school_.courses[course_];
  const Id<Student>& student = school_.students[student_];
  const auto done =
      decide(store_, Seats{course}, StudentLoad{student},
             [&](Decision& decision, const Seats& course_seats, const StudentLoad& load) {
               if (course_seats.left <= 0) throw std::logic_error{"there are seats enough"};
               seen += course_seats.left + load.courses;
               decision.record(Subscribed{course, student});
             });
  sequence = done.last;
}

std::vector<Desk> make_desks(std::size_t count, bool hot) {
  constexpr std::size_t cold_ledgers = 100;
  std::vector<Desk> desks;
  for (std::size_t i = 0; i < count; ++i) {
    Desk desk{Id<Customer>::from("c" + std::to_string(i)), {}};
    for (std::size_t k = 0; k < (hot ? 1 : cold_ledgers); ++k) {
      desk.ledgers.push_back(
          Id<Ledger>::from(hot ? "main" : std::to_string(i) + '-' + std::to_string(k)));
    }
    desks.push_back(std::move(desk));
  }
  return desks;
}

void Issuing::run() {
  const Id<Ledger>& ledger = desk_.ledgers[turn_++ % desk_.ledgers.size()];
  std::int64_t calls = 0;
  decide(store_, LastNumber{ledger}, [&](Decision& decision, const LastNumber& last) {
    ++calls;
    decision.record(Issued{desk_.customer, ledger, last.number + 1});
  });
  ++decisions;
  conflicts += calls - 1;
}

Conflicts conflicts_of(const std::vector<std::unique_ptr<Subject>>& desks) {
  Conflicts all;
  for (const auto& desk : desks) {
    const auto& issuing = dynamic_cast<const Issuing&>(*desk);
    all.decisions += issuing.decisions;
    all.conflicts += issuing.conflicts;
  }
  return all;
}

void report_conflicts(Report& report, const std::string& name, bool hot, const Conflicts& all) {
  report.note(name + ": " + std::to_string(all.conflicts) + " conflicts in " +
              std::to_string(all.decisions) + " decisions");
  if (!hot && all.conflicts != 0) {
    throw std::logic_error{name + ": decisions on different tags conflicted"};
  }
}

void check_numbers(EventStore& store, const std::vector<Desk>& desks, std::int64_t issued) {
  std::set<std::string> ledgers;
  for (const Desk& desk : desks) {
    for (const Id<Ledger>& ledger : desk.ledgers) ledgers.insert(ledger.key());
  }
  std::int64_t found = 0;
  for (const std::string& key : ledgers) {
    const Id<Ledger> ledger = Id<Ledger>::from(key);
    decide(store, LastNumber{ledger},
           [&](Decision&, const LastNumber& last) { found += last.number; });
  }
  if (found != issued) {
    throw std::logic_error{"the numbers of invoices have a gap, or one was given twice"};
  }
}

double rate_of(const std::vector<std::unique_ptr<Subject>>& subjects,
               std::chrono::milliseconds length) {
  std::atomic<std::int64_t> done{0};
  std::vector<std::jthread> threads;
  const double taken = seconds([&] {
    const auto deadline = std::chrono::steady_clock::now() + length;
    for (const auto& subject : subjects) {
      threads.emplace_back([&] {
        const ContextScope scope{sample_context()};
        do {
          subject->run();
          ++done;
        } while (std::chrono::steady_clock::now() < deadline);
      });
    }
    threads.clear();
  });
  return static_cast<double>(done) / taken;
}

}  // namespace stela::bench
