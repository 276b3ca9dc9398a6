//! Tests what counts as a whole listing, against an API server that answers what the test wrote.

use serde_json::{Value, json};

use super::*;

/// An API server that answers what the test wrote.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<BTreeMap<String, Result<Option<Value>, ReadErrorKind>>>>);

impl Fake {
    fn set(&self, path: &str, answer: Result<Option<Value>, ReadErrorKind>) {
        self.0.lock().unwrap().insert(path.to_owned(), answer);
    }

    fn with_claims() -> (Self, ClusterProject) {
        let fake = Self::default();
        let group = json!({"name": "karpenter.sh", "versions": [{"version": "v1"}]});
        fake.set("/apis", Ok(Some(json!({"groups": [group]}))));
        let kind = json!({"name": "nodeclaims", "kind": "NodeClaim", "verbs": ["list"]});
        fake.set("/apis/karpenter.sh/v1", Ok(Some(json!({"resources": [kind]}))));
        fake.set(CLAIMS, Ok(Some(json!({"items": [{"metadata": {"name": "a", "uid": "u"}}]}))));
        let words = Words {
            cluster: Mark::Tag("cluster".into()),
            read_id: |text| Some(text.into()),
            is_strict: false,
        };
        (fake.clone(), ClusterProject::new(Arc::new(fake), words))
    }
}

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims?limit=100";

impl Source for Fake {
    fn nodes(&self) -> BoxFuture<'static, Result<Vec<LabelledNode>, ReadError>> {
        futures::future::ready(Ok(Vec::new())).boxed()
    }

    fn get(&self, path: String) -> BoxFuture<'static, Result<Option<Vec<u8>>, ReadError>> {
        let answer = self.0.lock().unwrap().get(&path).cloned().unwrap_or(Ok(None));
        let failed = |kind| ReadError { kind, text: Arc::from("no"), retry_after: None };
        let answer = answer.map(|body| body.map(|body| body.to_string().into_bytes())).map_err(failed);
        futures::future::ready(answer).boxed()
    }
}

async fn count(project: &ClusterProject) -> Option<usize> {
    project.machines().await.ok().map(|machines| machines.len())
}

#[tokio::test]
async fn kind_that_may_not_be_read_is_left_out_and_told() {
    let (fake, project) = Fake::with_claims();
    fake.set(CLAIMS, Err(ReadErrorKind::Forbidden));
    assert_eq!(count(&project).await, Some(0));
    let words = Words { is_strict: true, ..project.words.clone() };
    assert_eq!(
        count(&ClusterProject::new(Arc::new(fake.clone()), words)).await,
        None,
        "a controller is blind"
    );
    assert!(project.warning().is_some_and(|text| text.contains("NodeClaim") && text.contains("--records")));
    fake.set(CLAIMS, Ok(Some(json!({"items": []}))));
    assert_eq!(count(&project).await, Some(0));
    assert_eq!(project.warning(), None);
}

/// A right that is taken away, a definition that is deleted, a proxy that answers 404: none of them is the end of a machine.
#[tokio::test]
async fn records_that_were_listed_once_are_listed_or_nothing_is() {
    for answer in
        [Err(ReadErrorKind::Forbidden), Ok(None), Ok(Some(json!({}))), Err(ReadErrorKind::Unavailable)]
    {
        let (fake, project) = Fake::with_claims();
        assert_eq!(count(&project).await, Some(1));
        fake.set(CLAIMS, answer.clone());
        assert_eq!(count(&project).await, None, "{answer:?}");
    }
}

/// The next listing asks what is served: a definition that is gone takes its machines with it.
#[tokio::test]
async fn kind_that_is_served_no_more_is_believed_at_the_next_listing() {
    let (fake, project) = Fake::with_claims();
    assert_eq!(count(&project).await, Some(1));
    fake.set(CLAIMS, Ok(None));
    fake.set("/apis", Ok(Some(json!({"groups": []}))));
    assert_eq!(count(&project).await, None);
    assert_eq!(count(&project).await, Some(0));
}

#[tokio::test]
async fn list_goes_on_with_the_token_and_repeats_no_name() {
    let (fake, project) = Fake::with_claims();
    let page = |names: &[&str], next: &str| {
        let items: Vec<Value> =
            names.iter().map(|name| json!({"metadata": {"name": name, "uid": name}})).collect();
        Ok(Some(json!({"metadata": {"continue": next}, "items": items})))
    };
    fake.set(CLAIMS, page(&["a", "b"], "x/y="));
    let second = format!("{CLAIMS}&continue=x%2Fy%3D");
    fake.set(&second, page(&["c"], ""));
    assert_eq!(count(&project).await, Some(3));
    fake.set(&second, page(&["a"], ""));
    assert_eq!(count(&project).await, None);
}
