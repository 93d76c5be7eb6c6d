//! Tables as a user sees them: within 100 columns, without colours unless on a terminal.

use super::*;
use expect_test::expect;

#[test]
fn what_needs_attention_comes_first_and_the_verdict_last() {
    expect![[r#"
        CLAIM              OUTCOME    RESOURCE            MESSAGE
        blog/old-blog      Pending    -                   being deleted; old-blog is deleted with it
        reports/warehouse  Pending    -                   0/4 resources fit: 3 class, 1 version; 0/1
                                                          classes fit: 1 class (class analytics has no
                                                          template to make one from)
                                                          try: widen the claim's version to >= 16 ->
                                                          columns-16
        shop/tests         Pending    -                   over quota shop/shop: storage 40Gi of 50Gi used,
                                                          20Gi more asked
                                                          try: raise storage of quota shop/shop by 10Gi ->
                                                          shared-mysql
        blog/search        Provision  new postgres-small  no resource fits; the class would provision one
        blog/comments      Bound      shared-mysql        newly bound
        reports/archive    Bound      warehouse-14        newly bound
        shop/orders        Bound      orders-primary      newly bound
        shop/sessions      Bound      shared-mysql        newly bound

        RESOURCE        PHASE     RECLAIM  CLAIMS
        old-blog        Released  Delete   -
        orders-primary  Bound     -        shop/orders
        shared-mysql    Bound     -        blog/comments, shop/sessions
        warehouse-14    Bound     -        reports/archive

        8 claims: 4 bound, 1 provision, 3 pending; 1 resource without a claim
    "#]]
    .assert_eq(&succeed(&run(&["sim", "plan", "examples/plan/teams.yaml"])));
}

#[test]
fn what_is_no_text_in_a_name_reaches_no_terminal() {
    let evil = "class: \"gold\\e[2J\\e]0;x\\a\"";
    let input = documents(&[claim("x", evil), resource("db", evil)]);
    for arguments in [&["sim", "plan", "-"][..], &["sim", "explain", "-"]] {
        let output = run_with(arguments, &input);
        for bytes in [&output.stdout, &output.stderr] {
            let raw = |b: &u8| *b < 0x20 && *b != b'\n';
            assert!(!bytes.iter().any(raw), "{arguments:?}: {}", text(bytes));
        }
    }
    let reported = refused(&run_with(&["sim", "explain", "-", "--claim", "a/\u{1b}[2J"], &input));
    assert!(!reported.contains('\u{1b}'), "{reported:?}");
}

#[test]
fn tables_fit_a_hundred_columns_whatever_is_in_them() {
    let long = "n".repeat(63);
    let spec = format!(
        "engine: {long}, version: '>= 1.2.3', class: {long}, selector: {{matchLabels: {{{long}: {long}}}}}"
    );
    let claims: Vec<String> = (0..9).map(|at| claim(&format!("{long}{at}"), "engine: mysql")).collect();
    let mut all = vec![
        claim(&long, &spec),
        resource(&long, "engine: mysql, sharing: {maxClaims: 9}"),
        resource(&long.replace('n', "m"), &format!("version: 1.2.4, engine: {long}, class: {long}")),
    ];
    all.extend(claims);
    for command in ["plan", "explain"] {
        let reported = succeed(&run_with(&["sim", command, "-"], &documents(&all)));
        // The sentence above an explanation is not cut.
        let mut rows = reported.lines().filter(|line| !line.contains(" Pending: "));
        let wide = rows.find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{reported}");
        assert!(!reported.contains('\u{1b}'), "{reported}");
        assert!(reported.lines().all(|line| line.trim_end() == line), "{reported}");
    }
}

#[test]
fn an_input_without_claims_says_so() {
    let reported = succeed(&run_with(&["sim", "plan", "-"], &documents(&[resource("db-1", "")])));
    assert_eq!(reported, "0 claims; 1 resource without a claim\n");
}

#[test]
fn long_tables_say_what_they_leave_out() {
    let claims: Vec<String> = (0..600).map(|at| claim(&format!("c{at}"), "")).collect();
    let reported = succeed(&run_with(&["sim", "plan", "-"], &documents(&claims)));
    assert!(reported.ends_with("\n100 claims more, in -o json\n\n600 claims: 600 pending\n"), "{reported}");
}
