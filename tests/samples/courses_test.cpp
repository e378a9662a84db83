// The worked examples of dcb.events: their cases, as given, when, then.
#include "courses/courses.hpp"

#include <stela/testing/decision_scenario.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

using stela::testing::given;
using stela::testing::given_nothing;

namespace course_subscriptions {

using namespace courses;

const CourseId c1 = CourseId::from("c1");
const CourseId c2 = CourseId::from("c2");
const CourseId c3 = CourseId::from("c3");
const CourseId c4 = CourseId::from("c4");
const CourseId c5 = CourseId::from("c5");
const CourseId c6 = CourseId::from("c6");
const StudentId s1 = StudentId::from("s1");
const StudentId s2 = StudentId::from("s2");
const StudentId s3 = StudentId::from("s3");

TEST(CourseSubscriptions, RefuseACourseWithAnExistingId) {
  given(CourseDefined{c1, 10})
      .when(DefineCourse{c1, 15})
      .throws<Refused>("Course with id \"c1\" already exists");
}

TEST(CourseSubscriptions, DefineACourseWithANewId) {
  given_nothing().when(DefineCourse{c1, 15}).then(CourseDefined{c1, 15});
}

TEST(CourseSubscriptions, RefuseToChangeACourseThatDoesNotExist) {
  given_nothing().when(ChangeCapacity{c1, 15}).throws<Refused>("Course \"c1\" does not exist");
}

TEST(CourseSubscriptions, RefuseTheCapacityThatTheCourseHas) {
  given(CourseDefined{c1, 12})
      .when(ChangeCapacity{c1, 12})
      .throws<Refused>("New capacity 12 is the same as the current capacity");
}

TEST(CourseSubscriptions, ChangeTheCapacity) {
  given(CourseDefined{c1, 12}).when(ChangeCapacity{c1, 15}).then(CapacityChanged{c1, 15});
}

TEST(CourseSubscriptions, RefuseACourseThatDoesNotExist) {
  given_nothing().when(Subscribe{c1, s1}).throws<Refused>("Course \"c1\" does not exist");
}

TEST(CourseSubscriptions, RefuseACourseThatIsFull) {
  given(CourseDefined{c1, 3}, Subscribed{c1, s1}, Subscribed{c1, s2}, Subscribed{c1, s3})
      .when(Subscribe{c1, StudentId::from("s4")})
      .throws<Refused>("Course \"c1\" is already fully booked");
}

TEST(CourseSubscriptions, RefuseAStudentWhoIsSubscribed) {
  given(CourseDefined{c1, 10}, Subscribed{c1, s1})
      .when(Subscribe{c1, s1})
      .throws<Refused>("Student already subscribed to this course");
}

TEST(CourseSubscriptions, RefuseAStudentWithFiveCourses) {
  given(CourseDefined{c6, 10}, Subscribed{c1, s1}, Subscribed{c2, s1}, Subscribed{c3, s1},
        Subscribed{c4, s1}, Subscribed{c5, s1})
      .when(Subscribe{c6, s1})
      .throws<Refused>("Student already subscribed to 5 courses");
}

TEST(CourseSubscriptions, SubscribeAStudentToACourse) {
  given(CourseDefined{c1, 10}).when(Subscribe{c1, s1}).then(Subscribed{c1, s1});
}

TEST(CourseSubscriptions, FillASeatThatACapacityMade) {
  given(CourseDefined{c1, 1}, Subscribed{c1, s1}, CapacityChanged{c1, 2})
      .when(Subscribe{c1, s2})
      .then(Subscribed{c1, s2});
}

}  // namespace course_subscriptions

class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace unique_username {

struct Account {
  static constexpr std::string_view category = "account";
};

struct AccountRegistered {
  static constexpr stela::EventType event_type{"account.registered"};
  stela::Id<Account> account;
  std::string username;
  static constexpr auto tags = stela::tags(&AccountRegistered::account,
                                           stela::tag<"username">(&AccountRegistered::username));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(account), CEREAL_NVP(username));
  }
};
struct AccountClosed {
  static constexpr stela::EventType event_type{"account.closed"};
  stela::Id<Account> account;
  std::string username;
  static constexpr auto tags =
      stela::tags(&AccountClosed::account, stela::tag<"username">(&AccountClosed::username));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(account), CEREAL_NVP(username));
  }
};
struct UsernameChanged {
  static constexpr stela::EventType event_type{"account.username_changed"};
  stela::Id<Account> account;
  std::string from;
  std::string to;
  static constexpr auto tags =
      stela::tags(&UsernameChanged::account, stela::tag<"username">(&UsernameChanged::from),
                  stela::tag<"username">(&UsernameChanged::to));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(account), CEREAL_NVP(from), CEREAL_NVP(to));
  }
};

constexpr auto retention = std::chrono::hours{24 * 3};

/// Whether a name is taken; a name that was given up stays so for three days.
struct Claim {
  using Events = stela::EventSet<AccountRegistered, AccountClosed, UsernameChanged>;
  std::string username;
  static constexpr auto tags = stela::tags(stela::tag<"username">(&Claim::username));
  bool taken = false;
  std::optional<stela::Timestamp> given_up = {};

  void apply(const AccountRegistered&) { take(); }
  void apply(const stela::Recorded<AccountClosed>& event) { give_up(event.recorded_at()); }
  void apply(const stela::Recorded<UsernameChanged>& event) {
    event->to == username ? take() : give_up(event.recorded_at());
  }
  bool is_free(stela::Timestamp now) const {
    return !taken && (!given_up || now - *given_up > retention);
  }

 private:
  void take() {
    taken = true;
    given_up.reset();
  }
  void give_up(stela::Timestamp when) {
    taken = false;
    given_up = when;
  }
};

struct Register {
  stela::Id<Account> account;
  std::string username;

  auto views() const { return std::tuple{Claim{username}}; }
  void operator()(stela::Decision& decision, const Claim& claim) const {
    if (!claim.is_free(decision.now())) {
      throw Refused{"Username \"" + username + "\" is claimed"};
    }
    decision.record(AccountRegistered{account, username});
  }
};

const auto a1 = stela::Id<Account>::from("a1");
const auto a2 = stela::Id<Account>::from("a2");

TEST(UniqueUsername, IsRefusedWhenClaimed) {
  given(AccountRegistered{a1, "u1"})
      .when(Register{a2, "u1"})
      .throws<Refused>("Username \"u1\" is claimed");
}
TEST(UniqueUsername, IsGivenWhenFree) {
  given_nothing().when(Register{a1, "u1"}).then(AccountRegistered{a1, "u1"});
  given(AccountRegistered{a1, "u1"}).when(Register{a2, "u2"}).then(AccountRegistered{a2, "u2"});
}
TEST(UniqueUsername, OfAClosedAccountIsRefusedWithinTheRetention) {
  given(AccountRegistered{a1, "u1"}, AccountClosed{a1, "u1"})
      .when(Register{a2, "u1"})
      .throws<Refused>("is claimed");
}
TEST(UniqueUsername, OfAClosedAccountIsGivenAfterTheRetention) {
  given(AccountRegistered{a1, "u1"}, AccountClosed{a1, "u1"})
      .later(std::chrono::hours{24 * 4})
      .when(Register{a2, "u1"})
      .then(AccountRegistered{a2, "u1"});
}
TEST(UniqueUsername, ThatWasChangedIsRefusedWithinTheRetention) {
  given(AccountRegistered{a1, "u1"}, UsernameChanged{a1, "u1", "u1changed"})
      .when(Register{a2, "u1"})
      .throws<Refused>("is claimed");
}
TEST(UniqueUsername, ThatWasChangedIsGivenAfterTheRetention) {
  given(AccountRegistered{a1, "u1"}, UsernameChanged{a1, "u1", "u1changed"})
      .later(std::chrono::hours{24 * 4})
      .when(Register{a2, "u1"})
      .then(AccountRegistered{a2, "u1"});
}
TEST(UniqueUsername, ThatAnotherChangedToIsRefused) {
  given(AccountRegistered{a1, "u1"}, UsernameChanged{a1, "u1", "u1changed"})
      .when(Register{a2, "u1changed"})
      .throws<Refused>("is claimed");
}

}  // namespace unique_username

namespace invoice_number {

struct InvoiceCreated {
  static constexpr stela::EventType event_type{"invoice.created"};
  std::int64_t number = 0;
  std::string series = "main";
  static constexpr auto tags = stela::tags(stela::tag<"invoice">(&InvoiceCreated::number),
                                           stela::tag<"invoice_series">(&InvoiceCreated::series));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(number), CEREAL_NVP(series));
  }
};

struct LastInvoice {
  using Events = stela::EventSet<InvoiceCreated>;
  std::string series = "main";
  static constexpr auto tags = stela::tags(stela::tag<"invoice_series">(&LastInvoice::series));
  static constexpr bool last_only = true;
  std::int64_t number = 0;
  void apply(const InvoiceCreated& event) { number = event.number; }
};

struct CreateInvoice {
  auto views() const { return std::tuple{LastInvoice{}}; }
  void operator()(stela::Decision& decision, const LastInvoice& last) const {
    decision.record(InvoiceCreated{last.number + 1});
  }
};

TEST(InvoiceNumber, BeginsWithOne) {
  given_nothing().when(CreateInvoice{}).then(InvoiceCreated{1});
}
TEST(InvoiceNumber, FollowsTheLastOne) {
  given(InvoiceCreated{1}, InvoiceCreated{2}).when(CreateInvoice{}).then(InvoiceCreated{3});
}

}  // namespace invoice_number

namespace opt_in_token {

struct SignUp {
  static constexpr std::string_view category = "sign_up";
};

struct SignUpInitiated {
  static constexpr stela::EventType event_type{"sign_up.initiated"};
  stela::Id<SignUp> email_hash;
  std::string otp;
  std::string name;
  static constexpr auto tags =
      stela::tags(&SignUpInitiated::email_hash, stela::tag<"otp">(&SignUpInitiated::otp));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(email_hash), CEREAL_NVP(otp), CEREAL_NVP(name));
  }
};
struct SignUpConfirmed {
  static constexpr stela::EventType event_type{"sign_up.confirmed"};
  stela::Id<SignUp> email_hash;
  std::string otp;
  std::string name;
  static constexpr auto tags =
      stela::tags(&SignUpConfirmed::email_hash, stela::tag<"otp">(&SignUpConfirmed::otp));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(email_hash), CEREAL_NVP(otp), CEREAL_NVP(name));
  }
};

struct PendingSignUp {
  using Events = stela::EventSet<SignUpInitiated, SignUpConfirmed>;
  stela::Id<SignUp> email_hash;
  std::string otp;
  static constexpr auto tags =
      stela::tags(&PendingSignUp::email_hash, stela::tag<"otp">(&PendingSignUp::otp));
  std::optional<std::string> name = {};
  bool used = false;
  stela::Timestamp initiated = {};

  void apply(const stela::Recorded<SignUpInitiated>& event) {
    name = event->name;
    initiated = event.recorded_at();
  }
  void apply(const SignUpConfirmed&) { used = true; }
};

struct ConfirmSignUp {
  stela::Id<SignUp> email_hash;
  std::string otp;

  auto views() const { return std::tuple{PendingSignUp{email_hash, otp}}; }
  void operator()(stela::Decision& decision, const PendingSignUp& pending) const {
    if (!pending.name) throw Refused{"No pending sign-up for this OTP / email address"};
    if (pending.used) throw Refused{"OTP was already used"};
    if (decision.now() - pending.initiated > std::chrono::minutes{60}) throw Refused{"OTP expired"};
    decision.record(SignUpConfirmed{email_hash, otp, *pending.name});
  }
};

const auto john = stela::Id<SignUp>::from("hash-of-john");
const auto jane = stela::Id<SignUp>::from("hash-of-jane");

TEST(OptInToken, ThatIsUnknownIsRefused) {
  given_nothing().when(ConfirmSignUp{john, "000000"}).throws<Refused>("No pending sign-up");
}
TEST(OptInToken, OfAnotherAddressIsRefused) {
  given(SignUpInitiated{john, "111111", "John"})
      .when(ConfirmSignUp{jane, "111111"})
      .throws<Refused>("No pending sign-up");
}
TEST(OptInToken, ThatWasUsedIsRefused) {
  given(SignUpInitiated{john, "222222", "John"}, SignUpConfirmed{john, "222222", "John"})
      .when(ConfirmSignUp{john, "222222"})
      .throws<Refused>("OTP was already used");
}
TEST(OptInToken, ThatHasExpiredIsRefused) {
  given(SignUpInitiated{john, "333333", "John"})
      .later(std::chrono::minutes{61})
      .when(ConfirmSignUp{john, "333333"})
      .throws<Refused>("OTP expired");
}
TEST(OptInToken, ThatIsValidConfirms) {
  given(SignUpInitiated{john, "444444", "John"})
      .when(ConfirmSignUp{john, "444444"})
      .then(SignUpConfirmed{john, "444444", "John"});
}

}  // namespace opt_in_token

namespace prevent_record_duplication {

struct Order {
  static constexpr std::string_view category = "order";
};

struct OrderPlaced {
  static constexpr stela::EventType event_type{"order.placed"};
  stela::Id<Order> order;
  std::string idempotency_token;
  static constexpr auto tags =
      stela::tags(&OrderPlaced::order, stela::tag<"idempotency">(&OrderPlaced::idempotency_token));
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(order), CEREAL_NVP(idempotency_token));
  }
};

struct TokenUse {
  using Events = stela::EventSet<OrderPlaced>;
  std::string token;
  static constexpr auto tags = stela::tags(stela::tag<"idempotency">(&TokenUse::token));
  bool used = false;
  void apply(const OrderPlaced&) { used = true; }
};

struct PlaceOrder {
  stela::Id<Order> order;
  std::string token;
  auto views() const { return std::tuple{TokenUse{token}}; }
  void operator()(stela::Decision& decision, const TokenUse& use) const {
    if (use.used) throw Refused{"Re-submission"};
    decision.record(OrderPlaced{order, token});
  }
};

TEST(RecordDuplication, OfATokenIsRefused) {
  const auto o1 = stela::Id<Order>::from("o1");
  given(OrderPlaced{stela::Id<Order>::from("o12345"), "11111"})
      .when(PlaceOrder{o1, "11111"})
      .throws<Refused>("Re-submission");
}
TEST(RecordDuplication, OfANewTokenIsNone) {
  const auto o1 = stela::Id<Order>::from("o1");
  given(OrderPlaced{stela::Id<Order>::from("o12345"), "22222"})
      .when(PlaceOrder{o1, "11111"})
      .then(OrderPlaced{o1, "11111"});
}

}  // namespace prevent_record_duplication

namespace dynamic_price {

struct Product {
  static constexpr std::string_view category = "product";
};
using ProductId = stela::Id<Product>;

struct ProductDefined {
  static constexpr stela::EventType event_type{"product.defined"};
  ProductId product;
  std::int64_t price = 0;
  static constexpr auto tags = stela::tags(&ProductDefined::product);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(product), CEREAL_NVP(price));
  }
};
struct PriceChanged {
  static constexpr stela::EventType event_type{"product.price_changed"};
  ProductId product;
  std::int64_t price = 0;
  static constexpr auto tags = stela::tags(&PriceChanged::product);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(product), CEREAL_NVP(price));
  }
};
struct ProductsOrdered {
  static constexpr stela::EventType event_type{"products.ordered"};
  std::string cart;
  std::vector<ProductId> products;
  std::vector<std::int64_t> prices;
  static constexpr auto tags =
      stela::tags(stela::tag<"cart">(&ProductsOrdered::cart), &ProductsOrdered::products);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(cart), CEREAL_NVP(products), CEREAL_NVP(prices));
  }
};

constexpr auto grace = std::chrono::minutes{10};

/// The prices at which a product may be ordered: the current one, and older ones for ten minutes.
struct Prices {
  using Events = stela::EventSet<ProductDefined, PriceChanged>;
  ProductId product;
  static constexpr auto tags = stela::tags(&Prices::product);
  stela::Timestamp now = stela::system_clock().now();
  std::optional<std::int64_t> current = {};
  std::vector<std::int64_t> recent = {};

  void apply(const ProductDefined& event) { current = event.price; }
  void apply(const stela::Recorded<PriceChanged>& event) {
    if (current && now - event.recorded_at() <= grace) recent.push_back(*current);
    current = event->price;
  }
  bool is_valid(std::int64_t price) const {
    return price == current || std::find(recent.begin(), recent.end(), price) != recent.end();
  }
};

struct OrderProducts {
  std::vector<ProductId> products;
  std::vector<std::int64_t> prices;
  std::chrono::minutes later{0};

  auto views() const {
    std::vector<Prices> all;
    for (const ProductId& product : products) {
      all.push_back({.product = product, .now = stela::system_clock().now() + later});
    }
    return std::tuple{all};
  }
  void operator()(stela::Decision& decision, const std::vector<Prices>& all) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].is_valid(prices[i])) {
        throw Refused{"invalid price for product \"" + products[i].key() + "\""};
      }
    }
    decision.record(ProductsOrdered{"cart1", products, prices});
  }
};

const ProductId p1 = ProductId::from("p1");
const ProductId p2 = ProductId::from("p2");

TEST(DynamicPrice, ThatIsWrongIsRefused) {
  given(ProductDefined{p1, 123})
      .when(OrderProducts{{p1}, {100}})
      .throws<Refused>("invalid price for product \"p1\"");
}
TEST(DynamicPrice, ThatIsRightIsTaken) {
  given(ProductDefined{p1, 123})
      .when(OrderProducts{{p1}, {123}})
      .then(ProductsOrdered{"cart1", {p1}, {123}});
}
TEST(DynamicPrice, ThatChangedALongTimeAgoIsRefused) {
  given(ProductDefined{p1, 123}, PriceChanged{p1, 134})
      .when(OrderProducts{{p1}, {123}, std::chrono::minutes{20}})
      .throws<Refused>("invalid price");
}
TEST(DynamicPrice, ThatChangedJustNowIsTaken) {
  given(ProductDefined{p1, 123}, PriceChanged{p1, 134})
      .when(OrderProducts{{p1}, {123}})
      .then(ProductsOrdered{"cart1", {p1}, {123}});
  given(ProductDefined{p1, 123}, PriceChanged{p1, 134})
      .when(OrderProducts{{p1}, {134}})
      .then(ProductsOrdered{"cart1", {p1}, {134}});
}
TEST(DynamicPrice, OfSeveralProductsIsCheckedForEach) {
  given(ProductDefined{p1, 123}, ProductDefined{p2, 321})
      .when(OrderProducts{{p1, p2}, {123, 320}})
      .throws<Refused>("invalid price for product \"p2\"");
  given(ProductDefined{p1, 123}, ProductDefined{p2, 321})
      .when(OrderProducts{{p1, p2}, {123, 321}})
      .then(ProductsOrdered{"cart1", {p1, p2}, {123, 321}});
}

}  // namespace dynamic_price

}  // namespace
